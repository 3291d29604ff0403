"""One name, one thing: no public class or function of the package has the name of another one.

A new name must be unique. OLD has the exceptions of today; a rename removes a name from it.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import driftwise

SOURCES = Path(driftwise.__file__).parent
# A command and what it runs: `driftwise backup` and the function that copies a database.
COMMANDS = {
    "backup", "evaluate", "evidence", "explain", "export", "forget", "refold", "restore", "run", "serve", "verify",
}  # fmt: skip
# One piece by one name in every memory, adaptation and family: factories are given them under that name. So are the
# sections of an agent's snapshot.
PIECES = {
    "absorb_", "accepts", "run_", "turn_", "weight", "after_", "before_", "bank_scores_", "Lanes", "lane_follow_",
    "lane_foretell_", "lane_fresh_", "lane_learn_", "arrays", "fill", "migrate", "version_of",
}  # fmt: skip
# Answers of the service as the server writes them and as the client's types describe them: one thing on two sides.
ANSWERS = {"Arm", "Decided", "Rewarded", "Refusal", "Counts", "RampAnswer", "StreamAnswer", "Streams", "Explained"}
# Names that stand for two things. None may be added. Sums: the sums of a log (public), and a bundle of a state's sums.
OLD = {"Sums"}

# The decorators of kernels (_internal/compiling.py), which also make functions.
DECORATORS = {"entry", "kernel", "loop", "part", "piece", "routine", "scalar"}


def defined(sources: dict[str, str]) -> dict[str, list[str]]:
    """Where each public class and function of modules is defined, kernels that are made too: `f = piece(g)`."""
    found = defaultdict(list)
    for path, text in sources.items():
        for node in ast.parse(text).body:
            names = []
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                names = [node.name]
            elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
                if getattr(node.value.func, "id", "") in DECORATORS:
                    names = [target.id for target in node.targets if isinstance(target, ast.Name)]
            for name in names:
                if not name.startswith("_"):
                    found[name].append(path)
    return found


def test_no_new_name_stands_for_two_things():
    found = defined({str(path.relative_to(SOURCES)): path.read_text() for path in SOURCES.rglob("*.py")})
    twice = {name: paths for name, paths in found.items() if len(paths) > 1}
    new = {name: paths for name, paths in twice.items() if name not in COMMANDS | PIECES | ANSWERS | OLD}
    assert not new, f"give one of each another name: {new}"


def test_the_list_of_old_names_has_only_names_that_stand_for_two_things():
    found = defined({str(path.relative_to(SOURCES)): path.read_text() for path in SOURCES.rglob("*.py")})
    assert not {name for name in OLD if len(found[name]) < 2}, "take them out of OLD"


def test_what_users_import_has_its_name_alone_above_the_kernels():
    paths = [path for path in SOURCES.rglob("*.py") if "kernels" not in path.parts]
    found = defined({str(path.relative_to(SOURCES)): path.read_text() for path in paths})
    assert not {name: found[name] for name in driftwise.__all__ if len(found[name]) > 1 and name not in COMMANDS}


def test_a_name_that_stands_for_two_things_is_found():
    first = "class Row: pass\ndef one(): pass\nfold_ = piece(_fold)"
    found = defined({"a.py": first, "b.py": "class Row: pass\ndef _one(): pass\ndef fold_(): pass\nfirst = len([])"})
    assert {name for name, paths in found.items() if len(paths) > 1} == {"Row", "fold_"}
