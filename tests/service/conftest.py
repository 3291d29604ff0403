"""A PostgreSQL server for the tests that need one. Without PostgreSQL they are skipped, with the reason."""

import pytest

from service.server import Server, missing


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    why = missing()
    if why:
        pytest.skip(why)
    made = Server(tmp_path_factory.mktemp("postgres"))
    yield made
    made.close()


@pytest.fixture
def database(server):
    """The address of a new database."""
    return server.database()
