"""The Prefect server of a home as a process of ours: how it is started, and what it runs.

Run as ``python -m ppdm.services.prefect_process PORT SOCKET RECORD [USERS]``. With USERS it ends
when nobody holds that lock file any more, without it only when it is told to.
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
    STOP_GRACE,
    Running,
    listening,
    record_self,
    running_as,
    spawn_server,
    write_record,
)

MODULE = "ppdm.services.prefect_process"
HEALTH = "/api/health"
OWN_NAMES = ("127.0.0.1", "localhost")
WATCH_EVERY = 1.0
POOL_PATIENCE = 120.0  # seconds that a request waits for the database
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


def spawn(
    *, record: Path, log: Path, prefect_home: Path, users: Path | None, port: int = 0
) -> Running:
    """Start a server on the port, or on a free one, and write down who it is."""
    prefect_home.mkdir(parents=True, exist_ok=True)
    with listening(port) as listener:
        port = listener.getsockname()[1]
        watched = [] if users is None else [str(users)]
        process = spawn_server(
            [MODULE, str(port), str(listener.fileno()), str(record), *watched],
            listener=listener,
            environment=_environment(prefect_home, port, lasting=users is None),
            log=log,
        )
    running = running_as(process.pid, port, MODULE, HEALTH)
    write_record(record, running)
    return running


def _environment(prefect_home: Path, port: int, *, lasting: bool) -> dict[str, str]:
    environment = {
        **os.environ,
        "PREFECT_HOME": str(prefect_home),
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
        "PREFECT_SERVER_UI_API_URL": f"http://127.0.0.1:{port}/api",
        # Prefect would let any page in the steward's browser start runs.
        "PREFECT_SERVER_CORS_ALLOWED_ORIGINS": ",".join(f"http://{h}:{port}" for h in OWN_NAMES),
        "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "WARNING",
    }
    if not lasting:
        environment |= {f"PREFECT_SERVER_SERVICES_{n}_ENABLED": "false" for n in UNUSED_SERVICES}
        # Saves 4 s of the first start; what a lasting server offers people needs them.
        environment["PREFECT_SERVER_REGISTER_BLOCKS_ON_START"] = "false"
        environment["PREFECT_SERVER_MEMOIZE_BLOCK_AUTO_REGISTRATION"] = "false"
    environment.pop("PREFECT_API_URL", None)
    return environment


def _end_when_unused(server: Any, users: str) -> None:
    """Commands that were killed cannot stop their server."""
    descriptor = os.open(users, os.O_RDWR | os.O_CLOEXEC)
    while True:
        time.sleep(WATCH_EVERY)
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
    # The lock is kept until the end, so that nobody joins a server that is leaving.
    server.should_exit = True
    time.sleep(STOP_GRACE)
    os._exit(1)


def share_one_connection() -> None:
    """Prefect's own connections to SQLite block each other: one waits up to a minute for the write
    lock and keeps the event loop from freeing it. In memory Prefect itself uses only one."""
    from prefect.server.database import configurations
    from sqlalchemy.pool import AsyncAdaptedQueuePool

    one: dict[str, Any] = {"pool_size": 1, "max_overflow": 0, "pool_timeout": POOL_PATIENCE}
    make = configurations.create_async_engine
    configurations.create_async_engine = partial(make, poolclass=AsyncAdaptedQueuePool, **one)


def main(port: int, descriptor: int, record: Path, users: str | None) -> None:
    if users is None:
        record_self(record, port, MODULE, HEALTH)
    import uvicorn

    share_one_connection()
    config = uvicorn.Config(
        own_app(), log_level="error", lifespan="on", timeout_graceful_shutdown=2
    )
    server = uvicorn.Server(config)
    if users is not None:
        threading.Thread(target=_end_when_unused, args=(server, users), daemon=True).start()
    server.run(sockets=[socket.socket(fileno=descriptor)])


def own_app() -> Any:
    """Prefect's server for requests to this machine by its own names: a page elsewhere whose name
    was made to point here gets no answer."""
    from prefect.server.api.server import create_app
    from starlette.middleware.trustedhost import TrustedHostMiddleware

    return TrustedHostMiddleware(create_app(), allowed_hosts=list(OWN_NAMES))


if __name__ == "__main__":
    given_users = sys.argv[4] if len(sys.argv) > 4 else None
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]), given_users)
