"""The output on a terminal of 80 columns, and to a pipe while code is compiled."""

import fcntl
import io
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from types import SimpleNamespace

import pytest

import driftwise as dw
from driftwise._internal import compile_notice


def seen(*words, columns=80):
    """What a command writes to a terminal of so many columns, without colours."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    command = [sys.executable, "-m", "driftwise.cli", *words]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment) as process:
        os.close(theirs)
        parts = []
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # the other end was closed
                part = b""
            if not part:
                break
            parts.append(part)
        os.close(ours)
    assert process.returncode == 0
    return re.sub(r"\x1b\[[0-9;]*m", "", b"".join(parts).decode()).replace("\r\n", "\n")


def test_the_catalogue_fits_80_columns_with_whole_names_and_Auto_first():
    text = seen("list", "--all")
    assert max(map(len, text.splitlines())) <= 80
    first = [line.split("│")[1].strip() for line in text.splitlines() if line.startswith("│")]
    names = [name for name in first if name]
    assert names[0] == "Auto" and sorted(names) == sorted(row["name"] for row in dw.catalogue())
    cells = [line.split("│")[5] for line in text.splitlines() if line.startswith("│")]
    needs = {word.strip(",") for cell in cells for word in cell.split()}
    assert needs <= {"dim", "horizon", "path_length", "changes"}, "no word of them is broken"


@pytest.mark.parametrize("word", ["-h", "--help"])
def test_help_says_whole_sentences(word):
    text = seen(word)
    assert "..." not in text.replace("[ARGS]...", "") and "--install-completion" in text
    assert " ".join(text.split()).count("every answer is on disk before it is sent.") == 1
    assert max(map(len, text.splitlines())) <= 80
    assert "Usage: " in seen("list", "-h")


def said(monkeypatch, terminal, bar=False, seconds=10.0):
    """What is written on stderr while two functions are compiled in so many seconds."""
    kind = type("FileProxy" if bar else "Stream", (io.StringIO,), {"isatty": lambda self: terminal})
    kind.__module__ = "rich.file_proxy" if bar else "here"
    stream, clock = kind(), iter([0.0, *[seconds] * 9])
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(compile_notice, "plain", True)  # a server of another test may have changed it in this process
    monkeypatch.setattr(compile_notice.time, "monotonic", lambda: next(clock))
    notice, event = compile_notice._Notice(), SimpleNamespace(data={"dispatcher": SimpleNamespace(__name__="play_")})
    for turn in (notice.on_start, notice.on_start, notice.on_end, notice.on_start, notice.on_end, notice.on_end):
        turn(event)
    return stream.getvalue()


def test_a_compile_is_one_plain_line_where_nothing_can_be_written_over(monkeypatch):
    for terminal, bar in ((False, False), (True, True)):
        assert said(monkeypatch, terminal, bar) == compile_notice._ONCE + "\n"
        assert said(monkeypatch, terminal, bar, seconds=1.0) == ""  # it was fast
    with compile_notice.one_for_all():  # two processes of a run, which inherit its environment
        assert [said(monkeypatch, False), said(monkeypatch, False)] == [compile_notice._ONCE + "\n", ""]
    shown = said(monkeypatch, True)
    assert shown.startswith("\rdriftwise compiles play") and shown.endswith("\r\x1b[2K") and "\n" not in shown
