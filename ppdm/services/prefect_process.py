"""The Prefect server of a home as a separate process: how it is started, and what it runs.

Run as ``python -m ppdm.services.prefect_process PORT SOCKET RECORD [USERS]``. With USERS it exits
when no process holds that lock file any more, without it only when it is stopped.
"""

from __future__ import annotations

import fcntl
import os
import socket
import sys
import threading
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from ppdm.services.processes import (
    STOP_GRACE_SECONDS,
    ServerProcess,
    identify_process,
    open_listener,
    spawn_server,
    write_own_record,
    write_record,
)

MODULE = "ppdm.services.prefect_process"
HEALTH_PATH = "/api/health"
HOST_NAMES = ("127.0.0.1", "localhost")
USERS_CHECK_SECONDS = 1.0
POOL_TIMEOUT_SECONDS = 120.0  # that a request waits for the database
# They drive schedules and automations, which a server that lives for one command cannot serve.
UNUSED_SERVICES = (
    "SCHEDULER",
    "LATE_RUNS",
    "FOREMAN",
    "REPOSSESSOR",
    "TRIGGERS",
    "PAUSE_EXPIRATIONS",
    "CANCELLATION_CLEANUP",
    "CLEANUP_RECONCILER",
)


def spawn_prefect(
    *, record: Path, log: Path, prefect_home: Path, users: Path | None, port: int = 0
) -> ServerProcess:
    """Start a server on the port, or on a free one, and write its record."""
    prefect_home.mkdir(parents=True, exist_ok=True)
    with open_listener(port) as listener:
        port = listener.getsockname()[1]
        watched = [] if users is None else [str(users)]
        process = spawn_server(
            [MODULE, str(port), str(listener.fileno()), str(record), *watched],
            listener=listener,
            environment=_build_environment(prefect_home, port, lasting=users is None),
            log=log,
        )
    server = identify_process(process.pid, port, MODULE, HEALTH_PATH)
    write_record(record, server)
    return server


def _build_environment(prefect_home: Path, port: int, *, lasting: bool) -> dict[str, str]:
    origins = ",".join(f"http://{host}:{port}" for host in HOST_NAMES)
    environment = {
        **os.environ,
        "PREFECT_HOME": str(prefect_home),
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
        "PREFECT_SERVER_UI_API_URL": f"http://127.0.0.1:{port}/api",
        # By default Prefect lets any page in the steward's browser start runs.
        "PREFECT_SERVER_CORS_ALLOWED_ORIGINS": origins,
        "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "WARNING",
    }
    if not lasting:
        environment |= {f"PREFECT_SERVER_SERVICES_{n}_ENABLED": "false" for n in UNUSED_SERVICES}
        # Saves 4 s of the first start; the pages of a lasting server need the blocks.
        environment["PREFECT_SERVER_REGISTER_BLOCKS_ON_START"] = "false"
        environment["PREFECT_SERVER_MEMOIZE_BLOCK_AUTO_REGISTRATION"] = "false"
    environment.pop("PREFECT_API_URL", None)
    return environment


def _exit_when_unused(server: Any, users: str) -> None:
    """Stop the server when its users are gone: a killed command cannot stop it."""
    descriptor = os.open(users, os.O_RDWR | os.O_CLOEXEC)
    while True:
        time.sleep(USERS_CHECK_SECONDS)
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
    # The lock is held until the end, so that no command joins a server that is stopping.
    server.should_exit = True
    time.sleep(STOP_GRACE_SECONDS)
    os._exit(1)


def use_single_connection() -> None:
    """Make Prefect use one connection to SQLite.

    Several connections block each other: one waits up to a minute for the write lock and keeps
    the event loop from freeing it. In memory Prefect itself uses only one.
    """
    from prefect.server.database import configurations
    from sqlalchemy.pool import AsyncAdaptedQueuePool

    one: dict[str, Any] = {"pool_size": 1, "max_overflow": 0, "pool_timeout": POOL_TIMEOUT_SECONDS}
    make = configurations.create_async_engine
    configurations.create_async_engine = partial(make, poolclass=AsyncAdaptedQueuePool, **one)


def main(port: int, descriptor: int, record: Path, users: str | None) -> None:
    """Run the server on an inherited socket until it is stopped or unused."""
    if users is None:
        write_own_record(record, port, MODULE, HEALTH_PATH)
    import uvicorn

    use_single_connection()
    config = uvicorn.Config(
        create_local_app(), log_level="error", lifespan="on", timeout_graceful_shutdown=2
    )
    server = uvicorn.Server(config)
    if users is not None:
        threading.Thread(target=_exit_when_unused, args=(server, users), daemon=True).start()
    server.run(sockets=[socket.socket(fileno=descriptor)])


def create_local_app() -> Any:
    """Return Prefect's server for requests that name this machine.

    A foreign page whose host name was made to resolve to this machine is refused.
    """
    from prefect.server.api.server import create_app
    from starlette.middleware.trustedhost import TrustedHostMiddleware

    return TrustedHostMiddleware(create_app(), allowed_hosts=list(HOST_NAMES))


if __name__ == "__main__":
    given_users = sys.argv[4] if len(sys.argv) > 4 else None
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]), given_users)
