"""The public names: imported from their modules on first use, without heavy imports before."""

import ast
import subprocess
import sys
from pathlib import Path

import driftwise


def test_the_names_for_readers_of_types_are_those_that_are_found():
    block = next(node for node in ast.parse(Path(driftwise.__file__).read_text()).body if isinstance(node, ast.If))
    told = {(node.module, name.name) for node in block.body for name in node.names}
    found = {(f"driftwise.{home}", name) for home, names in driftwise._HOMES.items() for name in names.split()}
    modules = {name for module, name in told if module == "driftwise"}
    assert {one for one in told if one[0] != "driftwise"} == found
    assert {name for _, name in found} | modules == set(driftwise.__all__) <= set(dir(driftwise))


def test_every_public_name_is_there_and_others_are_not():
    assert all(getattr(driftwise, name) is not None for name in driftwise.__all__)
    assert not hasattr(driftwise, "nothing") and not hasattr(driftwise, "_nothing")
    assert driftwise.policies.linear.LinearUCB is driftwise.LinearUCB


def test_the_command_line_imports_nothing_heavy_before_it_knows_what_is_asked():
    heavy = "{'numba', 'numpy', 'scipy', 'starlette', 'uvicorn'}"
    look = f"import sys, driftwise.cli, driftwise.service.stores.lock; print(sorted({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_all_public_names_together_load_nothing_of_the_laboratory():
    ask = "import sys, driftwise as dw; [getattr(dw, name) for name in dw.__all__]; import driftwise.cli; "
    told = "print([name for name in sys.modules if name.startswith('driftwise.lab')])"
    done = subprocess.run([sys.executable, "-c", ask + told], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
