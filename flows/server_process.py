"""The Prefect server of a home as a process of ours: how it is started, and what it runs.

Run as ``python -m flows.server_process PORT SOCKET [USERS]``; with USERS it ends when that lock
file has no holder left, without it only when it is told to.
"""

from __future__ import annotations

import fcntl
import os
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from flows.processes import STOP_GRACE, Running, running_as, write_record

MODULE = "flows.server_process"
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
    with listening(port) as listener, open(log, "wb") as output:
        # The server inherits the bound socket: nobody can take the port in between, and whoever
        # connects too early waits in its queue.
        port, descriptor = listener.getsockname()[1], listener.fileno()
        watched = [] if users is None else [str(users)]
        process = subprocess.Popen(
            [sys.executable, "-m", MODULE, str(port), str(descriptor), *watched],
            cwd=Path(__file__).resolve().parents[1],
            env=_environment(prefect_home, port, lasting=users is None),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            pass_fds=[descriptor],
            start_new_session=True,  # Ctrl-C is for the command
        )
    running = running_as(process, port, MODULE, "/api/health")
    write_record(record, running)
    return running


def listening(port: int) -> socket.socket:
    """A socket on the port if it is free, else on any free one."""
    for wanted in (port, 0):
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", wanted))
            listener.listen(128)
        except OSError:
            listener.close()
            if wanted == 0:
                raise
        else:
            return listener
    raise AssertionError("unreachable")


def _environment(prefect_home: Path, port: int, *, lasting: bool) -> dict[str, str]:
    environment = {
        **os.environ,
        "PREFECT_HOME": str(prefect_home),
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
        "PREFECT_SERVER_UI_API_URL": f"http://127.0.0.1:{port}/api",
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


def main(descriptor: int, users: str | None) -> None:
    import uvicorn

    share_one_connection()
    config = uvicorn.Config(
        "prefect.server.api.server:create_app",
        factory=True,
        log_level="error",
        lifespan="on",
        timeout_graceful_shutdown=2,
    )
    server = uvicorn.Server(config)
    if users is not None:
        threading.Thread(target=_end_when_unused, args=(server, users), daemon=True).start()
    server.run(sockets=[socket.socket(fileno=descriptor)])


if __name__ == "__main__":
    main(int(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else None)
