"""The description and the service agree: requests made from /openapi.json get answers that it describes."""

import pytest
from hypothesis import HealthCheck, given, settings

from driftwise.service.http.app import ROUTES
from driftwise.service.wire.openapi import document
from service.living import ARMS, living

schemathesis = pytest.importorskip("schemathesis")
OPERATIONS = {
    (path, method): one for path, row in document()["paths"].items() for method, one in row.items()
    if method != "parameters"
}  # fmt: skip
# Valid requests go to all routes; invalid ones only to routes with a body or parameters.
CASES = [("POSITIVE", *one) for one in OPERATIONS]
CASES += [("NEGATIVE", *one) for one, facts in OPERATIONS.items() if "requestBody" in facts]


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with living(tmp_path_factory.mktemp("contract") / "a.db") as asked:
        asked.put()
        asked.decide("a", ARMS)
        described = asked.get("/openapi.json").json()
        for path in described["paths"].values():  # so that requests find existing streams and decisions
            for one in path.get("parameters", ()):
                one["schema"] = {"enum": {"stream": ["home", "nobody"], "id": ["a", "b"]}[one["name"]]}
        yield asked, schemathesis.openapi.from_dict(described)


@pytest.mark.parametrize(("kind", "path", "method"), CASES)
def test_every_answer_is_one_that_is_described(served, kind, path, method):
    from schemathesis import GenerationMode
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi.checks import (
        content_type_conformance,
        response_schema_conformance,
        status_code_conformance,
    )

    asked, schema = served
    operation = schema[path][method]

    @given(case=operation.as_strategy(generation_mode=GenerationMode[kind]))
    @settings(max_examples=12, suppress_health_check=list(HealthCheck), database=None)
    def ask(case):
        given_ = case.as_transport_kwargs(base_url="http://127.0.0.1:8000")
        answer = asked.wait(asked.client.request(
            given_["method"], given_["url"], params=given_.get("params"), headers=dict(given_.get("headers") or {}),
            json=given_.get("json"), content=given_.get("data"),
        ))  # fmt: skip
        checks = [not_a_server_error, content_type_conformance, response_schema_conformance, status_code_conformance]
        case.validate_response(schemathesis.Response.from_any(answer), checks=checks)

    ask()


def test_every_route_is_described_and_everything_described_is_a_route():
    described = {(method.upper(), path) for path, method in OPERATIONS}
    assert described - {("GET", "/healthz"), ("GET", "/readyz")} == {(method, path) for method, path, *_ in ROUTES}
