"""A Dask scheduler as an executor: a running scheduler, or new processes on this machine.

A scheduler runs any code that it is sent. A connection is therefore allowed only on this machine, or over TLS with
certificates on both sides. Errors of Dask become one sentence. The caller keeps the results that were finished.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
from collections.abc import Iterator
from concurrent.futures import CancelledError, Executor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from driftwise.errors import BadInput, DriftwiseError

# How many times a chunk is run again after its worker was lost.
AGAIN = 3
# Chunks take seconds, so workers are polled less often than Dask's default of a hundred times a second.
_CALM = {
    "distributed.worker.profile.enabled": False, "distributed.admin.tick.interval": "500ms",
    "distributed.admin.system-monitor.interval": "5s",
}  # fmt: skip
_RESUME = "the same command continues where it stopped"
_CERTIFICATES = ("ca.pem", "cert.pem", "key.pem")
_WANTED = "local:N, or the address of a Dask scheduler such as tcp://127.0.0.1:8786"


class SchedulerLost(DriftwiseError):
    """The scheduler or too many workers were lost. Finished results are kept."""


@contextmanager
def on(where: str, tls: Path | None = None) -> Iterator[Executor]:
    """An executor. `local:N` starts N processes here; an address connects to a scheduler. `tls` is a folder with
    ca.pem, cert.pem and key.pem."""
    processes = re.fullmatch(r"local:(\d+)", where)
    if not processes:
        _checked(where, tls)
    elif not 1 <= int(processes[1]) <= 10_000:
        raise BadInput("on", where, "local:N with at least one process", "pass local:2 for example")
    try:
        import dask
        import distributed
    except ImportError:
        wanted = "Dask, which --on needs"
        raise BadInput("on", where, wanted, 'pip install "driftwise[cluster]"') from None
    settings = {"distributed.scheduler.allowed-failures": AGAIN, "distributed.comm.timeouts.connect": "10s"}
    _quietly()
    count = int(processes[1]) if processes else 0
    with dask.config.set(settings | _CALM), _sentences(where), _client(distributed, where, count, tls) as client:
        yield client.get_executor(pure=False)


@contextmanager
def _client(distributed: Any, where: str, processes: int, tls: Path | None) -> Iterator[Any]:
    """A connection. Processes that it started end with it."""
    if not processes:
        security = _security(distributed, tls) if tls else None
        with distributed.Client(where, security=security, set_as_default=False) as client:
            if not client.nthreads():
                wanted = "a scheduler that has workers"
                raise BadInput("on", where, wanted, f"start some: dask worker {where}")
            yield client
        return
    local = distributed.LocalCluster(
        n_workers=processes, threads_per_worker=1, processes=True, host="127.0.0.1",
        dashboard_address="127.0.0.1:0", scheduler_kwargs={"dashboard": False}, silence_logs="CRITICAL", config=_CALM,
    )  # fmt: skip
    with local, distributed.Client(local, set_as_default=False) as client:
        yield client


def _security(distributed: Any, tls: Path) -> Any:
    """TLS settings: both sides show certificates of the same authority."""
    ca, cert, key = (str(tls / name) for name in _CERTIFICATES)
    return distributed.Security(
        tls_ca_file=ca, tls_client_cert=cert, tls_client_key=key, require_encryption=True
    )


def _checked(where: str, tls: Path | None) -> None:
    """Refuse an address that is neither on this machine nor over TLS with certificates."""
    found = re.fullmatch(r"(?:(tcp|tls)://)?(?:\[([0-9A-Fa-f:]+)\]|([^\s/\[\]:]+)):(\d{1,5})", where)
    if not found:
        raise BadInput("on", where, _WANTED, "start one by `dask scheduler --host 127.0.0.1`")
    kind, host = found[1] or "tcp", found[2] or found[3]
    if kind == "tcp" and not _here(host):
        wanted = "a scheduler on this machine, or tls:// with certificates, because it runs any code it is sent"
        raise BadInput("on", where, wanted, "pass --on tls://… --tls FOLDER; see docs/cluster.md")
    if (kind == "tls") != (tls is not None):
        wanted = "--tls FOLDER beside a tls:// address, and beside no other"
        raise BadInput("tls", None if tls is None else str(tls), wanted, "see docs/cluster.md")
    missing = [name for name in _CERTIFICATES if tls is not None and not (tls / name).is_file()]
    if missing:
        raise BadInput("tls", str(tls), f"a folder with {', '.join(_CERTIFICATES)}", f"add {missing[0]}")


def _here(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@contextmanager
def _sentences(where: str) -> Iterator[None]:
    """Turn the exceptions that Dask raises when workers or the scheduler are lost into one sentence."""
    import distributed
    from distributed.client import FutureCancelledError
    from distributed.comm.core import CommClosedError

    try:
        yield
    except DriftwiseError:
        raise
    except distributed.scheduler.KilledWorker as error:
        last = getattr(getattr(error, "last_worker", None), "address", "unknown")
        lost = f"on: a chunk lost its worker {AGAIN + 1} times, the last at {last}"
        raise SchedulerLost(f"{lost}; check its memory; {_RESUME}") from None
    except (CommClosedError, FutureCancelledError, CancelledError, asyncio.CancelledError, TimeoutError) as error:
        said = f"on: the scheduler at {where} does not answer ({type(error).__name__})"
        raise SchedulerLost(f"{said}; {_RESUME}") from None
    except ImportError as error:
        raise BadInput("worker", str(error), "the same driftwise as the driver", "install it on every worker") from None
    except OSError as error:
        if isinstance(error.filename, str):  # an error of a file, not of the network
            raise
        raise SchedulerLost(f"on: no scheduler answers at {where} ({error}); {_RESUME}") from None


def _quietly() -> None:
    """Turn off Dask's log. It prints tracebacks when a scheduler ends, which the error message already reports."""
    import logging

    for name in ("distributed", "distributed.client", "distributed.core", "tornado.application"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
