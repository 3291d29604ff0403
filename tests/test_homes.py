"""One place for every formula: the number of places of each, counted by shape (homes.py), may only fall.

ALLOWED and QUESTIONS are the numbers of today: a change that merges two places lowers a number. The comment at a
number says what shall remain.
"""

from __future__ import annotations

import ast

import pytest

import homes

ALLOWED = {
    "loop of rounds": 1,  # rounds.py
    "Cholesky factorisation": 3,  # algebra.py, by tiles, and in one pass with solutions (foretell.py)
    "forward substitution": 3,  # algebra.py, lists, eight trials
    "index by whitening": 2,
    "radius times a root": 15,
    "module that asks the linear radius": 1,
    "module with MASTER": 1,  # adapt/master.py, over any lane
    "module with BOB": 1,
    "module with a bank": 1,
    "layout by hand": 2,  # scores in a form; the gauge of Auto, whose places files hold
}
# Type checks on policies (0 outside policies), on memories, on a user's own policy and on continuous sets.
QUESTIONS = {
    "simulation": (0, 0, 0, 0), "eight": (0, 0, 0, 0), "agent": (0, 1, 0, 0), "data": (0, 0, 0, 0),
    "lab": (0, 0, 0, 0), "service": (0, 0, 0, 0), "cli": (0, 0, 0, 0), "commands": (0, 0, 0, 0),
    "checks": (2, 1, 0, 0), "worlds": (0, 0, 0, 3), "policies": (9, 3, 1, 1),
}  # fmt: skip
KERNELS, POLICIES = homes.modules("kernels"), homes.modules("policies")
KINDS = [homes.kinds_below(one, POLICIES) for one in ("Compiled", "Memory", "Own", "Region")]
DETECTORS: dict[str, homes.Detector] = {
    "loop of rounds": homes.plays_rounds,
    "Cholesky factorisation": homes.factors_a_matrix,
    "forward substitution": homes.substitutes,
    "index by whitening": homes.whitens,
    "radius times a root": homes.scales_a_root,
    "layout by hand": homes.lays_out,
}
# Functions that only such a place calls.
CALLED = {
    "module that asks the linear radius": {"linear_radius"},
    "module with MASTER": {"master_turn_"},
    "module with BOB": {"bob_turn_"},
    "module with a bank": {"bank_behind"},
}


def counted(what: str) -> list[str]:
    if what in DETECTORS:
        return homes.homes(DETECTORS[what], KERNELS)
    return homes.callers(CALLED[what], KERNELS)


@pytest.mark.parametrize("what", ALLOWED)
def test_a_formula_has_no_more_homes_than_it_had(what):
    found = counted(what)
    assert found, f"the detector of a {what} finds none: it no longer knows the shape"
    assert len(found) <= ALLOWED[what], f"{len(found)} homes of a {what}, share one that is there: {found}"


@pytest.mark.parametrize("layer", QUESTIONS)
def test_no_layer_asks_more_questions_of_class_than_it_did(layer):
    trees = homes.modules(layer if (homes.SOURCES / layer).is_dir() else f"{layer}.py")
    asked = [sum(homes.asked_kind(one, tree) for tree in trees.values()) for one in KINDS]
    more = [now > before for now, before in zip(asked, QUESTIONS[layer], strict=True)]
    assert not any(more), f"{layer}: {asked}, at most {QUESTIONS[layer]}: ask the policy what it does, not what it is"


@pytest.mark.parametrize("layer", ["simulation", "agent", "data", "lab", "service", "cli", "commands"])
def test_nobody_above_policies_reads_how_a_state_is_laid_out(layer):
    trees = homes.modules(layer if (homes.SOURCES / layer).is_dir() else f"{layer}.py")
    read = {path: found for path, tree in trees.items() if (found := homes.layout_reads(tree))}
    assert not read, f"ask the policy (policies/questions.py), or the state by a method: {read}"


def test_the_product_loads_nothing_of_the_laboratory():
    """Layers let the command line import the laboratory, and it does so inside commands and for type checkers alone."""
    loaded = [
        path for path, tree in homes.modules("*.py", "agent", "data", "policies", "service").items()
        for node in tree.body
        if isinstance(node, ast.Import | ast.ImportFrom) and "driftwise.lab" in ast.unparse(node)
    ]  # fmt: skip
    assert not loaded


def privately_read(tree):
    """The parts of an agent, and the field that holds them, that are read by a private name of another object."""
    parts = ast.walk(homes.modules("agent")["agent/parts.py"])
    names = {f"_{node.attr}" for node in parts if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)}
    return [node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr in names | {"_parts"}
            and not (isinstance(node.value, ast.Name) and node.value.id == "self")]  # fmt: skip


@pytest.mark.parametrize("layer", ["agent", "data", "commands.py"])
def test_modules_read_the_parts_of_an_agent_by_public_names(layer):
    found = [(path, name) for path, tree in homes.modules(layer).items() for name in privately_read(tree)]
    allowed = [("agent/agent.py", "_parts"), ("agent/parts.py", "_parts")] if layer == "agent" else []
    assert found == allowed, "take AgentParts (agent/parts.py)"


def test_a_private_read_of_a_part_is_found():
    source = "agent._book.open\nself._book\nlock._is_owned()\nmade._parts"
    assert sorted(privately_read(ast.parse(source))) == ["_book", "_parts"]


def test_a_read_of_a_layout_is_found():
    source = "from driftwise.kernels.point import CLOCK, Floats\n\ndef f(state):\n    return state.counters[0, CLOCK]\n"
    assert homes.layout_reads(ast.parse(source)) == ["counters", "CLOCK"]


# ------------------------------------------------------------------------------------------ planted examples

PLANTED = {
    "loop of rounds": """
def go(p, s, way, luck, out):
    for when in range(way.shape[0]):
        pick = guess(p, s)
        got = outcome(way, when, pick, luck, out)
        absorb(p, s, pick, got)
    return 0
""",
    "Cholesky factorisation": """
def split(M, ridge, T):
    for r in range(T.shape[0]):
        for c in range(r + 1):
            acc = M[r, c]
            for m in range(c):
                acc -= T[r, m] * T[c, m]
            T[r, c] = acc / T[c, c] if c < r else np.sqrt(acc + ridge)
""",
    "forward substitution": """
def down(T, right, ans):
    for r in range(ans.size):
        acc = right[r]
        for c in range(r):
            acc = acc - ans[c] * T[r, c]
        ans[r] = acc / T[r, r]
""",
    "index by whitening": """
def worth(T, inv, h, x, w):
    mean, total = 0.0, 0.0
    for r in range(w.size):
        e = x[r]
        for c in range(r):
            e -= T[r, c] * w[c]
        w[r] = e * inv[r]
        mean += w[r] * h[r]
        total += w[r] * w[r]
    return mean, total
""",
    "radius times a root": """
def extra(wide, forms, out):
    for q in range(forms.size):
        out[q] = wide * math.sqrt(forms[q])
""",
    "layout by hand": """
def parts(flat, d, n):
    step = d * d
    return Pair(view(flat, 0, (d, d)), view(flat, step, (n, d)))
""",
}
# Other spellings of the same: eight lanes, four rows per pass, by columns, with a helper, by NumPy's views.
SPELT = {
    "forward substitution": ["""
def lanes(T, inv, right, ans):
    for r in range(inv.shape[0]):
        acc = load(right, r)
        for c in range(r):
            acc -= load(T, (r, c)) * load(ans, c)
        store_(ans, r, acc * load(inv, r))
""", """
def columns(U, inv, ans):
    for c in range(ans.size):
        e = ans[c] * inv[c]
        ans[c] = e
        for r in range(c + 1, ans.size):
            ans[r] -= U[c, r] * e
"""],
    "Cholesky factorisation": ["""
def less(T, r, c, e):
    for m in range(c):
        e -= T[r, m] * T[c, m]
    return e

def split(T, ridge):
    for c in range(T.shape[0]):
        top = 1.0 / roots(less(T, c, c, ridge))
        for r in range(c + 1, T.shape[0]):
            T[r, c] = one_less(T, r, T, c) * top

def one_less(A, r, B, c):
    e = A[r, c]
    for m in range(c):
        e -= A[r, m] * B[c, m]
    return e
"""],
    "layout by hand": ["""
def parts(flat, d):
    return flat[: d * d].reshape(d, d), flat[d * d : 2 * d * d].reshape(d, d)
"""],
}  # fmt: skip
# Code that looks similar and is not.
OTHERS = {
    "loop of rounds": """
def fold(p, s, X, rewards):
    for t in range(rewards.shape[0]):
        learn(p, s, X, t, rewards[t])
""",
    "Cholesky factorisation": """
def length(v):
    total = 0.0
    for i in range(v.size):
        for k in range(v.size):
            total += v[i] * v[k]
    return math.sqrt(total)
""",
    "forward substitution": """
def back(T, z):
    for i in range(z.size - 1, -1, -1):
        v = z[i]
        for k in range(i + 1, z.size):
            v -= T[k, i] * z[k]
        z[i] = v / T[i, i]
""",
    "index by whitening": """
def down(T, inv, b, z):
    for i in range(z.size):
        v = b[i]
        for k in range(i):
            v -= T[i, k] * z[k]
        z[i] = v * inv[i]
""",
    "radius times a root": """
def length(a, b):
    return math.sqrt(a * a + b * b)
""",
    "layout by hand": """
def one(flat, d):
    return view(flat, 0, (d, d))
""",
}


@pytest.mark.parametrize("what", DETECTORS)
def test_a_copy_under_other_names_is_found(what):
    for source in (PLANTED[what], *SPELT.get(what, [])):
        assert homes.homes(DETECTORS[what], {"planted": ast.parse(source)}), source
    assert not homes.homes(DETECTORS[what], {"other": ast.parse(OTHERS[what])})


def test_a_caller_under_another_name_is_found():
    source = "from driftwise.kernels.linear import linear_radius as beta\n\ndef f(p):\n    return beta(p, 0, 1.0)\n"
    assert homes.callers({"linear_radius"}, {"planted": ast.parse(source)}) == ["planted"]
    assert not homes.callers({"linear_radius"}, {"other": ast.parse("def f(p):\n    return radius(p)\n")})


def test_a_question_of_class_is_found_however_it_is_asked():
    source = """
from driftwise.policies.linear import LinearUCB as Line

def f(policy):
    match policy:
        case LinearUCB():
            return 1
    return isinstance(policy, (int, Line)) or type(policy) is dw.LinearUCB or isinstance(policy, int)
"""
    assert homes.asked_kind({"LinearUCB"}, ast.parse(source)) == 3
