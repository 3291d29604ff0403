"""No web page of another site can use the server through a browser: every route checks Host, Origin and type."""

import base64
import http.server
import threading

import pytest

from driftwise.cli import main
from driftwise.errors import BadInput
from driftwise.service.http.app import ROUTES
from driftwise.service.http.sites import Site
from driftwise.service.operate import keeping
from driftwise.service.wire.protocol import Refusal
from service.living import ARMS, BODY, living
from service.loading import Server
from test_browser import CHROMIUM, QUIET, playwright  # noqa: F401 - a fixture

HEALTH = ("/healthz", "/readyz")
BODIES = {
    "decide": {"arms": ARMS}, "reward": {"id": "a", "value": 1.0}, "decide/batch": [{"arms": ARMS}],
    "reward/batch": [{"id": "a", "value": 1.0}], "policy": {**BODY, "half_life": 5}, "items": {"items": {}},
    "forget": {"before": "2100-01-01"}, "": BODY,
}  # fmt: skip


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A server that has keys, and the key of its owner."""
    path = tmp_path_factory.mktemp("sites") / "a.db"
    key = keeping.create_key(path, "decide,reward,admin", "*", "")
    with living(path) as asked:
        asked.owner = {"authorization": f"Bearer {key}"}
        asked.basic = {"authorization": "Basic " + base64.b64encode(f"me:{key}".encode()).decode()}
        assert asked.ask("PUT", "home", json=BODY, headers=asked.owner).status_code == 201
        assert asked.ask("POST", "home/decide", json={"arms": ARMS, "id": "a"}, headers=asked.owner).status_code == 200
        yield asked


def every_route(asked):
    """All routes as (method, path), including those that a later version adds."""
    found = {(method, route.path) for route in asked.routes for method in route.methods - {"HEAD"}}
    assert {(method, path.replace("{id}", "{id:path}")) for method, path, *_ in ROUTES} < found and len(found) > 18
    return sorted(found)


def ask(asked, method, path, headers, leave_out=()):
    """A request as a program would send it, except for some headers."""
    rest = path.removeprefix("/v1/streams/{stream}").removeprefix("/")
    made = asked.client.build_request(
        method, path.replace("{stream}", "home").replace("{id:path}", "a"), headers=headers,
        json=BODIES.get(rest) if method in ("POST", "PUT") else None,
    )  # fmt: skip
    for name in leave_out:
        del made.headers[name]
    return asked.wait(asked.client.send(made))


def follows(path):
    return path.endswith("/events")  # an answer that does not end, so HEAD is used


FOREIGN = {  # unusual headers, and the status of a request that reads and of one that changes something
    "a rebound name": ({"host": "evil.test"}, 421, 421),
    "a rebound name with the right port": ({"host": "evil.test:8000"}, 421, 421),
    "text": ({"content-type": "text/plain"}, None, 415),
    "a form": ({"content-type": "application/x-www-form-urlencoded"}, None, 415),
    "files": ({"content-type": "multipart/form-data; boundary=a"}, None, 415),
    "text that names JSON": ({"content-type": "text/plain; application/json"}, None, 415),
    "a page of another site": ({"origin": "https://evil.test"}, None, 403),
    "a page of another port": ({"origin": "http://127.0.0.1:3000"}, None, 403),
    "a page without an origin": ({"origin": "null"}, None, 403),
    "another site without an origin": ({"sec-fetch-site": "cross-site"}, None, 403),
    "another port without an origin": ({"sec-fetch-site": "same-site"}, None, 403),
}


@pytest.mark.parametrize("what", FOREIGN)
def test_no_route_serves_a_page_of_another_site(home, what):
    changed, reading, changing = FOREIGN[what]
    before = home.wait(home.client.get("/v1/streams/home", headers=home.owner)).json()
    for method, path in every_route(home):
        asked = "HEAD" if follows(path) else method
        told = ask(home, asked, path, {**home.owner, **changed})
        wanted = changing if method != "GET" else None if path in HEALTH else reading
        if wanted is not None:
            assert told.status_code == wanted, (method, path, told.text)
            if asked != "HEAD":
                assert set(told.json()) == {"code", "error", "field", "hint"}
        else:
            assert told.status_code == 200, (method, path, told.text)
        assert not [name for name in told.headers if name.startswith("access-control")]
    assert home.wait(home.client.get("/v1/streams/home", headers=home.owner)).json() == before


def test_the_refusals_say_what_to_do(home):
    assert "--allow-host" in ask(home, "GET", "/", {"host": "evil.test"}).json()["hint"]
    assert "evil.test" in ask(home, "GET", "/", {"host": "evil.test"}).json()["error"]
    told = ask(home, "POST", "/v1/streams/{stream}/reset", home.owner, ["content-type"])
    assert told.status_code == 415 and told.json()["field"] == "content-type"
    assert "Content-Type: application/json" in told.json()["hint"]
    assert "--allow-host" in ask(home, "PUT", "/v1/streams/{stream}", {"origin": "null"}).json()["hint"]


def test_a_password_that_browsers_resend_opens_pages_and_no_route_of_the_api(home):
    api = [(method, path) for method, path in every_route(home) if path.startswith("/v1/") or path == "/metrics"]
    for method, path in sorted(set(every_route(home)) - set(api)):
        assert ask(home, "HEAD" if follows(path) else method, path, home.basic).status_code == 200, path
    for method, path in api:
        told = ask(home, method, path, home.basic)
        assert told.status_code in (401, 429), (method, path)  # 429 after many attempts
        assert "Basic" not in told.headers.get("www-authenticate", "")
    home.service.access._failures.clear()


def test_pages_for_people_change_nothing(home):
    """So they need no token against forged requests. A page that changes something would fail here."""
    api = {path.replace("{id}", "{id:path}") for _, path, *_ in ROUTES}
    assert {method for method, path in every_route(home) if path not in api} == {"GET"}


@pytest.mark.parametrize("kind", ("application/json", "Application/JSON ; charset=utf-8", "application/json;a=b"))
def test_json_is_json_however_it_is_written(home, kind):
    told = ask(home, "POST", "/v1/streams/{stream}/decide", {**home.owner, "content-type": kind})
    assert told.status_code == 200


def test_no_preflight_is_granted(home):
    asked = {"origin": "https://evil.test", "access-control-request-method": "POST",
             "access-control-request-headers": "content-type"}  # fmt: skip
    told = ask(home, "OPTIONS", "/v1/streams/{stream}/reset", asked)
    assert told.status_code == 405 and not [name for name in told.headers if name.startswith("access-control")]


def test_no_answer_sends_a_browser_to_the_host_it_was_asked_by(home):
    for path in ("/v1/streams/home/", "/streams/home/", "/metrics/", "//evil.test/", "/healthz/"):
        told = home.wait(home.client.get("http://127.0.0.1:8000" + path, headers=home.owner))
        assert told.status_code == 404 and "location" not in told.headers, path


# ------------------------------------------------------------------------------------------ names


def status(site, *headers, method="GET", path="/", version="1.1"):
    raw = [(name.encode(), value.encode("latin-1")) for name, value in headers]
    try:
        site.check({"method": method, "path": path, "http_version": version, "headers": raw})
    except Refusal as refusal:
        return refusal.status
    return 200


ALWAYS = (
    "localhost", "LOCALHOST:8000", "localhost.", "localhost.:8000", "127.0.0.1", "127.0.0.1:1", "127.8.9.1",
    "[::1]", "[::1]:8000", "[0:0::1]", "[::ffff:127.0.0.1]:8000", "127.0.0.1:",
)  # fmt: skip
NEVER = (
    "evil.test", "localhost.evil.test", "127.0.0.1.evil.test", "a@127.0.0.1", "127.0.0.1@evil.test",
    "localhost:80@evil.test", "", ":8000", "localhost:port", "localhost:123456", "localhost/", "localhost evil",
    "localhost,evil.test", "::1", "[127.0.0.1]", "[::1", "[::1]evil", "[evil]", "127.1", "0x7f.1", "2130706433",
    "localhöst", "localhost..",
)  # fmt: skip


@pytest.mark.parametrize("bound", ("127.0.0.1", "::1", "localhost", "0.0.0.0", "::", "10.1.2.3", "box"))
def test_this_machine_is_always_a_right_host_and_no_name_of_others_is(bound):
    site = Site(bound)
    for _ in range(2):  # the second time from the cache
        assert {status(site, ("host", host)) for host in ALWAYS} == {200}
        assert {host: status(site, ("host", host)) for host in NEVER} == dict.fromkeys(NEVER, 421)


def test_the_address_that_is_bound_is_right_and_behind_a_wildcard_every_address_but_no_name():
    lan, six, box = Site("10.1.2.3"), Site("fd00::3"), Site("Box.")
    assert status(lan, ("host", "10.1.2.3:8000")) == 200 and status(lan, ("host", "10.1.2.4:8000")) == 421
    assert status(six, ("host", "[fd00:0::3]:8000")) == 200 and status(six, ("host", "[fd00::4]")) == 421
    assert status(box, ("host", "BOX:8000")) == 200 and status(box, ("host", "10.1.2.3")) == 421
    for everywhere in (Site("0.0.0.0"), Site("::"), Site("")):
        assert status(everywhere, ("host", "10.1.2.3:8000")) == status(everywhere, ("host", "[fd00::4]")) == 200
        assert status(everywhere, ("host", "box")) == 421


def test_names_that_are_allowed_are_right_with_any_port_and_nothing_near_them():
    site = Site("127.0.0.1", ["Bandits.Example.com.", "driftwise", "10.0.0.9", "[fd00::9]", "fd00::a"])
    for host in ("bandits.example.com", "BANDITS.example.com:443", "bandits.example.com.", "driftwise:8000"):
        assert status(site, ("host", host)) == 200
    for host in ("10.0.0.9:80", "[fd00::9]", "[fd00::a]:80"):
        assert status(site, ("host", host)) == 200
    for host in ("example.com", "x.bandits.example.com", "bandits.example.com.evil.test", "driftwise.evil.test"):
        assert status(site, ("host", host)) == 421
    for wrong in ("", "*", "https://a.com", "a.com:443", "[::1]:80", "a b", "a/b", "me@a.com", "bücher.example"):
        with pytest.raises(BadInput, match="allow-host"):
            Site("0.0.0.0", [wrong])


def test_the_command_takes_names_and_refuses_what_is_none(tmp_path, monkeypatch, capsys):
    made = []
    monkeypatch.setattr("driftwise.service.http.run.run", lambda application, *_: made.append(application))
    command = ["serve", "--db", str(tmp_path / "a.db"), "--host", "127.0.0.5", "--allow-host", "a.com"]
    with pytest.raises(SystemExit) as ended:
        main([*command, "--allow-host", "driftwise"])
    site = made[0].api.site
    assert ended.value.code == 0
    assert {status(site, ("host", host)) for host in ("a.com", "driftwise:80", "127.0.0.5:8000")} == {200}
    assert status(site, ("host", "b.com")) == status(site, ("host", "10.1.2.3")) == 421
    made[0].api.service.close()
    with pytest.raises(SystemExit) as ended:
        main([*command, "--allow-host", "https://b.com/"])
    assert ended.value.code == 2 and "leave out the scheme" in capsys.readouterr().err and len(made) == 1


def test_one_host_is_sent_and_only_http_1_0_may_leave_it_out():
    site = Site()
    assert status(site) == 400 and status(site, version="1.0") == 200
    for name, value in (("host", "localhost"), ("origin", "http://localhost"), ("content-type", "application/json")):
        own = [("host", "localhost"), (name, value)] if name != "host" else [(name, value)]
        assert status(site, *own) == 200 and status(site, *own, (name, value)) == 400
    assert status(site, ("host", "evil.test"), version="1.0") == 421


def test_a_rebound_page_is_not_told_why_a_server_is_not_well(tmp_path):
    with living(tmp_path / "a.db") as asked:
        asked.service.engine.full = "no room in /srv/secret"
        told = asked.get("/healthz")
        assert told.status_code == 503 and told.json()["reason"] == "no room in /srv/secret"
        told = ask(asked, "GET", "/healthz", {"host": "evil.test:8000"})
        assert told.status_code == 503 and "secret" not in told.text
        asked.service.engine.full = ""


def test_health_checks_may_send_any_host_and_change_nothing():
    for path in HEALTH:
        assert status(Site(), ("host", "10.244.0.7:8000"), path=path) == status(Site(), path=path) == 200
    assert status(Site(), ("host", "evil.test"), path="/healthz/") == 421


def test_what_is_known_of_hosts_is_bounded():
    site = Site()
    for port in range(1000):
        assert status(site, ("host", f"127.0.0.1:{port}")) == 200
    assert len(site._known) <= 256
    assert status(site, ("host", "127.0.0.1:999")) == 200 and status(site, ("host", "evil.test")) == 421


@pytest.mark.parametrize(("host", "origin", "wanted"), (
    ("127.0.0.1:8000", "http://127.0.0.1:8000", 200), ("LocalHost:8000", "http://localhost:8000", 200),
    ("[::1]:8000", "http://[::1]:8000", 200), ("localhost", "http://localhost", 200),
    ("a.com", "https://a.com", 200), ("127.0.0.1:8000", "https://a.com", 200), ("a.com", "https://a.com:8443", 200),
    ("127.0.0.1:8000", "http://localhost:8000", 403), ("127.0.0.1:8000", "http://127.0.0.1:3000", 403),
    ("127.0.0.1:8000", "http://127.0.0.1", 403), ("a.com", "https://b.a.com", 403), ("a.com", "null", 403),
    ("a.com", "", 403), ("a.com", "a.com", 403), ("a.com", "file://", 403), ("a.com", "https://a.com.evil.test", 403),
    ("a.com", "https://evil.test/a.com", 403), ("a.com", "https://a.com@evil.test", 403),
    ("a.com", "chrome-extension://a.com", 403),
))  # fmt: skip
def test_a_page_is_of_this_site_by_host_and_port_or_by_a_name_that_is_allowed(host, origin, wanted):
    asked = ("host", host), ("origin", origin), ("content-type", "application/json")
    assert status(Site("127.0.0.1", ["a.com"]), *asked, method="POST") == wanted
    assert status(Site("127.0.0.1", ["a.com"]), *asked) == 200  # a read, which is answered without a CORS header


def test_where_there_is_no_origin_the_browsers_own_word_counts():
    for site, wanted in (("same-origin", 200), ("none", 200), ("same-site", 403), ("cross-site", 403), ("x", 403)):
        asked = ("host", "localhost"), ("sec-fetch-site", site), ("content-type", "application/json")
        assert status(Site(), *asked, method="PUT") == wanted
    proxied = ("host", "a.com"), ("origin", "https://a.com"), ("sec-fetch-site", "same-site")
    assert status(Site(allowed=["a.com"]), *proxied, ("content-type", "application/json"), method="POST") == 200


def test_a_name_with_an_encoded_slash_asks_no_other_route(home):
    before = home.wait(home.client.get("/v1/streams/home", headers=home.owner)).json()
    for path in ("/v1/streams/home%2Freset", "/v1/streams/home%2fpause", "/v1%2Fstreams%2Fhome%2Freset"):
        told = home.wait(home.client.post(path, headers=home.owner))
        assert told.status_code == 422 and told.json()["field"] == "stream"
    assert home.wait(home.client.get("/v1/streams/home", headers=home.owner)).json() == before


# ------------------------------------------------------------------------------------------ a browser

ATTACK = """async (url) => {
  const reset = url + "/v1/streams/home/reset", reward = url + "/v1/streams/home/reward";
  const body = JSON.stringify({id: "a", value: 1}), told = [];
  const note = async (sent) => { try { const got = await sent; told.push(got.type + " " + got.status); }
                                 catch (slip) { told.push("blocked"); } };
  await note(fetch(reset, {method: "POST", mode: "no-cors"}));
  await note(fetch(reset, {method: "POST"}));
  await note(fetch(reward, {method: "POST", mode: "no-cors", body}));
  await note(fetch(reward, {method: "POST", mode: "no-cors", body: new Blob([body])}));
  await note(fetch(reward, {method: "POST", headers: {"content-type": "application/json"}, body}));
  await note(fetch(url + "/v1/streams/home"));
  navigator.sendBeacon(reset);
  navigator.sendBeacon(reward, body);
  const frame = document.createElement("iframe");
  frame.name = "aside";
  document.body.append(frame);
  const form = document.createElement("form");
  Object.assign(form, {method: "POST", action: reset, enctype: "text/plain", target: "aside"});
  document.body.append(form);
  const done = new Promise((loaded) => { frame.onload = loaded; setTimeout(loaded, 3000); });
  form.submit();
  await done;
  return told;
}"""
REBOUND = """async (path) => {
  const told = [];
  for (const how of [{}, {method: "POST", headers: {"content-type": "application/json"}, body: "{}"}])
    told.push((await fetch(path, how)).status);
  return told;
}"""


class Elsewhere(http.server.BaseHTTPRequestHandler):
    """A page of another site."""

    def do_GET(self):
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>elsewhere</title>")

    def log_message(self, *_):
        pass


def test_no_page_of_another_site_changes_or_reads_a_stream_in_a_real_browser(tmp_path, playwright):  # noqa: F811
    """An open server on loopback, a page at another port, and a name rebound to the server's address."""
    server = Server(tmp_path / "a.db")
    elsewhere = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere)
    threading.Thread(target=elsewhere.serve_forever, daemon=True).start()
    rebound = ["--host-resolver-rules=MAP evil.test 127.0.0.1"]
    try:
        assert server.put().status_code == 201
        before = server.stream()
        with playwright() as play:
            chromium = play.chromium.launch(executable_path=CHROMIUM, args=QUIET + rebound)
            page = chromium.new_page()
            for name in ("127.0.0.1", "evil.test"):
                page.goto(f"http://{name}:{elsewhere.server_port}/")
                told = page.evaluate(ATTACK, server.url)
                assert told == ["opaque 0", "blocked", "opaque 0", "opaque 0", "blocked", "blocked"]
                assert server.stream() == before
            # A rebound name: for the browser the page and the server are of one origin.
            assert page.goto(f"http://evil.test:{server.port}/").status == 421
            for path in ("/v1/streams/home", "/v1/streams/home/reset"):
                assert page.evaluate(REBOUND, path) == [421, 421]
            assert server.stream() == before
            # The server's own pages open and update, without an error in the console.
            complaints = []
            page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
            page.goto(f"{server.url}/streams/home")
            page.locator("#live", has_text="live").wait_for()  # the page's policy forbids a script of the test's own
            assert not complaints
            chromium.close()
    finally:
        elsewhere.shutdown()
        elsewhere.server_close()
        server.kill()
