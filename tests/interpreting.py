"""A script's output, compiled and interpreted. Whether numba compiles is decided at import, so each needs a process."""

import os
import subprocess
import sys


def both_ways(script):
    """What the script prints, compiled and interpreted."""
    return [_printed(script, disable) for disable in ("0", "1")]


def interpreted(script):
    """What the script prints if nothing is compiled; it can import the tests."""
    return _printed(f"import sys; sys.path[:0] = {sys.path!r}\n{script}", "1")


def _printed(script, disable):
    environment = {**os.environ, "NUMBA_DISABLE_JIT": disable}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
