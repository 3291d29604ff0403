"""Runs Python as a user without a name, a home folder or the right to write."""

import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
NOBODY = 54321

# Runs before anything else is imported. Root becomes a user without a line in passwd, who may read everything (the
# interpreter may be in root's home) and write only what every user can write.
BECOME = f"""
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def capabilities(keep):
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    data = (ctypes.c_uint32 * 6)()
    assert libc.syscall(125, header, data) == 0, "capget"
    data[0], data[2], data[3], data[5] = data[1] & keep, 0, 0, 0
    assert libc.syscall(126, header, data) == 0, "capset"
assert libc.prctl(8, 1, 0, 0, 0) == 0, "keepcaps"
os.setgid({NOBODY}), os.setuid({NOBODY})
capabilities(1 << 2)  # CAP_DAC_READ_SEARCH
os.environ.pop("HOME", None)
"""


def can_become():
    return os.name == "posix" and os.geteuid() == 0 and os.uname().machine == "x86_64"


def as_nobody(code, **environment):
    """The finished process of this code, run by the user nobody."""
    kept = {key: value for key, value in os.environ.items() if key not in ("HOME", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR")}
    command = [sys.executable, "-W", "error", "-c", BECOME + code]
    environment = {**kept, **environment}
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=300)


def python(code, *, timeout=300, env=(), check=True):
    """The output of this code in a process of its own."""
    path = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, **dict(env)}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=timeout)
    assert not check or done.returncode == 0, (done.returncode, done.stderr[-3000:])
    return done
