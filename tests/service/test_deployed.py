"""The pages for operators: every line of docs/curl.md, docs/personalizer.md and deploy/ is run."""

import configparser
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from driftwise.cli import main
from driftwise.service.http.app import ROUTES
from driftwise.service.operate import keeping
from driftwise.service.stores.sqlite import SQLiteStore
from service.living import living
from service.loading import Server

ROOT = Path(__file__).resolve().parents[2]
CURL = (ROOT / "docs" / "curl.md").read_text(encoding="utf-8")
PERSONALIZER = (ROOT / "docs" / "personalizer.md").read_text(encoding="utf-8")


def calls():
    """The first shell block after the start of a server, and (call, expected answer) of all others."""
    _, first, *rest = re.findall(r"```sh\n(.*?)```", CURL, flags=re.S)
    found, lines = [], []
    for line in "".join(rest).splitlines():
        if line.startswith("# "):
            found.append(("\n".join(lines), line[2:]))
            lines = []
        else:
            lines.append(line)
    assert not lines, "a call without what comes back"
    return first, found


@pytest.mark.skipif(shutil.which("curl") is None, reason="docs/curl.md is not run: install curl")
@pytest.mark.parametrize(
    "keyed", [pytest.param(False, id="open", marks=pytest.mark.slow), pytest.param(True, id="with keys")]
)
def test_every_line_of_the_curl_page_gets_what_it_says(tmp_path, keyed):
    SQLiteStore(tmp_path / "a.db").close()
    key = keeping.create_key(tmp_path / "a.db", "decide,reward,admin", "*", "") if keyed else ""
    first, found = calls()
    assert len(found) > 30
    server = Server(tmp_path / "a.db")
    try:
        parts = [first, *(f"{call}\necho @@@" for call, _ in found)]
        told = {**os.environ, "url": server.url, "DRIFTWISE_KEY": key, "no_proxy": "*"}
        done = subprocess.run(["bash", "-u"], input="\n".join(parts), capture_output=True, text=True, env=told,
                              timeout=300, check=True)  # fmt: skip
    finally:
        server.stop()
    answers = done.stdout.split("@@@\n")
    assert len(answers) == len(found) + 1
    for (call, wanted), answer in zip(found, answers, strict=False):
        assert wanted in answer, f"{call}\n{answer[:500]}"


def test_the_curl_page_has_every_call():
    """Each route of the wire is called; a new route without a line on the page fails."""
    _, found = calls()
    asked = set()
    for call, _ in found:
        path = re.search(r"\$url(/\S*)", call)[1]
        method = (re.search(r"-X (\w+)", call) or [None, "GET"])[1]
        path = re.sub(r"/explain/\S+", "/explain/{id}", path)
        asked.add((method, re.sub(r"/streams/\w+", "/streams/{stream}", path)))
    assert {(method, path) for method, path, *_ in ROUTES} <= asked
    assert {("GET", path) for path in ("/healthz", "/readyz", "/metrics", "/openapi.json", "/")} <= asked


def test_what_personalizer_sent_is_answered_as_its_page_says(tmp_path):
    space = {}
    exec(compile(re.search(r"```python\n(.*?)```", PERSONALIZER, flags=re.S)[1], "personalizer.md", "exec"), space)
    rank, reward, shadow = (json.loads(one) for one in re.findall(r"```json\n(.*?)```", PERSONALIZER, flags=re.S))
    topics = {"cup final": "sport", "budget": "news", "new album": "music"}
    with living(tmp_path / "a.db") as asked:
        for name, mode in (("home", "live"), ("apprentice", "shadow")):
            assert asked.ask("PUT", name, json={**space["body"], "mode": mode}).status_code == 201
            rows = {item: {"topic": topic} for item, topic in topics.items()}
            assert asked.ask("PUT", f"{name}/items", json={"items": rows}).json() == {"items": 3}
        told = asked.ask("POST", "home/decide", json=rank).json()
        assert told["id"] == rank["id"] and told["item"] in rank["items"]
        assert asked.ask("POST", "home/reward", json=reward).json()["verdict"] == "learned"
        told = asked.ask("POST", "apprentice/decide", json=shadow).json()
        assert told["cohort"] == "shadow" and told["item"] == "budget" and "proposed" in told


def unit():
    read = configparser.RawConfigParser(strict=False, interpolation=None)
    read.optionxform = str
    read.read(ROOT / "deploy" / "driftwise.service")
    return read


def test_the_unit_starts_what_there_is_and_leaves_compiled_code_alone(monkeypatch, capsys):
    service = unit()["Service"]
    words = service["ExecStart"].split()
    assert words[0].endswith("/driftwise") and words[1] == "serve"
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TERM", "dumb")
    with pytest.raises(SystemExit, match="0"):
        main(["serve", "--help"])
    help = capsys.readouterr().out
    for option in (word for word in words if word.startswith("--")):
        assert option in help
    assert "MemoryDenyWriteExecute" not in service  # numba's code would not load
    assert service["DynamicUser"] == service["NoNewPrivileges"] == "yes" and service["ProtectSystem"] == "strict"
    assert set(service["RestartPreventExitStatus"].split()) == {"3", "4"}


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="the unit is not verified: no systemd-analyze")
def test_systemd_understands_the_unit(tmp_path):
    text = (ROOT / "deploy" / "driftwise.service").read_text().replace("/opt/driftwise/bin/driftwise", "/bin/true")
    (tmp_path / "driftwise.service").write_text(text)
    done = subprocess.run(["systemd-analyze", "verify", str(tmp_path / "driftwise.service")], capture_output=True,
                          text=True, check=False)  # fmt: skip
    assert "driftwise.service:" not in done.stderr, done.stderr


def test_the_image_is_not_root_and_its_health_check_tells_a_server_from_none(tmp_path):
    text = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8")
    assert re.search(r"^USER 10001:10001$", text, flags=re.M) and re.search(r"^VOLUME /data$", text, flags=re.M)
    last = text[text.rindex("\nFROM") :]
    assert last.index("USER") < last.index("ENTRYPOINT")
    listens = json.loads(re.search(r"^CMD (\[.*\])$", last, flags=re.M)[1])
    assert listens[listens.index("--host") + 1] == "0.0.0.0"
    assert listens[listens.index("--allow-host") + 1] == "driftwise"
    check = json.loads(re.search(r"HEALTHCHECK.*?CMD (\[.*?\])\n", text, flags=re.S)[1])
    copied = re.search(r"^COPY (pyproject.*) \./$", text, flags=re.M)[1].split()
    assert all((ROOT / name).is_file() for name in copied)
    server = Server(tmp_path / "a.db")
    told = [sys.executable, check[1], check[2].replace(":8000/", f":{server.port}/")]
    env = {**os.environ, "no_proxy": "*"}
    try:
        assert subprocess.run(told, capture_output=True, check=False, env=env).returncode == 0
    finally:
        server.stop()
    assert subprocess.run(told, capture_output=True, check=False, env=env).returncode != 0
