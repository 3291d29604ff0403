"""The statements of docs/service.md: its curl lines and its Python get the answers on the page."""

import re
import shlex
from pathlib import Path

import pytest

from driftwise.service.http.app import ROUTES
from service.living import Passing, living

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "service.md").read_text(encoding="utf-8")
CURLS_OWN = "Content-Type: application/x-www-form-urlencoded"  # the default content type of curl -d
README = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(("text", "wanted"), ((TEXT, 5), (README, 3)), ids=("docs", "README"))
def test_the_curl_lines_are_answered(tmp_path, text, wanted):
    lines = [line for line in text.splitlines() if line.startswith("curl ")]
    assert len(lines) == wanted
    json_header = re.search(r"json='(.*?)'", text)[1]
    with living(tmp_path / "a.db") as asked:
        answers = []
        for line in lines:
            line = line.replace("$home", "localhost:8000/v1/streams/home").replace("$json", json_header)
            words = shlex.split(line, comments=True)
            method = words[words.index("-X") + 1] if "-X" in words else "GET"
            body = words[words.index("-d") + 1] if "-d" in words else None
            (path,) = (word.partition("/v1/streams/")[2] for word in words if "/v1/streams/" in word)
            name, _, kind = (words[words.index("-H") + 1] if "-H" in words else CURLS_OWN).partition(": ")
            answers.append(asked.ask(method, path, content=body, headers={name: kind}))
        assert [one.status_code for one in answers] == [201, *[200] * (wanted - 1)]
        assert answers[2].json() == {"verdict": "learned", "seq": 1}


def test_the_python_runs(tmp_path):
    (block,) = re.findall(r"```python\n(.*?)```", TEXT, flags=re.S)
    with living(tmp_path / "a.db") as asked:
        space = {"passing": Passing(asked)}
        exec(block.replace('8000")', '8000", transport=passing)'), space)
        space["client"].close()
        assert asked.stream()["counts"]["learned"] == 1


def test_every_route_is_in_the_table():
    for method, path, *_ in ROUTES:
        rest = path.removeprefix("/v1/streams/{stream}")
        told = f"`{method} {path.replace('{stream}', '{s}')}`" if rest in ("", path) else f"…{rest}`"
        assert told in TEXT, path
