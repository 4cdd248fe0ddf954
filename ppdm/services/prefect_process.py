"""The Prefect server of a home as a separate process.

Run as ``python -m ppdm.services.prefect_process SOCKET HOME KIND``. A "lasting" server ends when it
is stopped, a "shared" one also when no process holds the lock of its users any more.
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

from ppdm.services.processes import STOP_GRACE_SECONDS, write_own_record
from warehouse.home import Home

MODULE = "ppdm.services.prefect_process"
HEALTH_PATH = "/api/health"
HOST_NAMES = ("127.0.0.1", "localhost")
USERS_CHECK_SECONDS = 1.0
POOL_TIMEOUT_SECONDS = 120.0  # that a request waits for the database


def main(listener: socket.socket, home: Home, *, is_lasting: bool) -> None:
    """Run the server on a bound socket until it is stopped or unused."""
    port = listener.getsockname()[1]
    if is_lasting:
        write_own_record(home.up_record("prefect"), port, HEALTH_PATH)
    set_environment(home, port, is_lasting=is_lasting)
    import uvicorn

    use_single_connection()
    app = create_local_app(is_lasting=is_lasting)
    config = uvicorn.Config(app, log_level="error", lifespan="on", timeout_graceful_shutdown=2)
    server = uvicorn.Server(config)
    if not is_lasting:
        watch = (server, home.locks / "server.users")
        threading.Thread(target=exit_when_unused, args=watch, daemon=True).start()
    server.run(sockets=[listener])


def set_environment(home: Home, port: int, *, is_lasting: bool) -> None:
    """Set what Prefect reads when it is imported."""
    os.environ.pop("PREFECT_API_URL", None)
    os.environ |= {
        "PREFECT_HOME": str(home.views / "prefect"),
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
        "PREFECT_SERVER_UI_API_URL": f"http://127.0.0.1:{port}/api",
        # By default Prefect lets any page in the steward's browser start runs.
        "PREFECT_SERVER_CORS_ALLOWED_ORIGINS": ",".join(
            f"http://{host}:{port}" for host in HOST_NAMES
        ),
        "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "WARNING",
    }
    if not is_lasting:
        # Saves 4 s of the first start; the pages of a lasting server need the blocks.
        os.environ["PREFECT_SERVER_REGISTER_BLOCKS_ON_START"] = "false"
        os.environ["PREFECT_SERVER_MEMOIZE_BLOCK_AUTO_REGISTRATION"] = "false"


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


def create_local_app(*, is_lasting: bool) -> Any:
    """Return Prefect's server for requests that name this machine.

    A foreign page whose host name was made to resolve to this machine is refused. A server that
    lives for one command has no pages, schedules or automations.
    """
    from fastapi.middleware.trustedhost import TrustedHostMiddleware
    from prefect.server.api.server import create_app

    app = create_app(ephemeral=not is_lasting)
    return TrustedHostMiddleware(app, allowed_hosts=list(HOST_NAMES))


def exit_when_unused(server: Any, users: Path) -> None:
    """Stop the server when its users are gone: a killed command cannot stop it."""
    with users.open("r+") as file:
        while True:
            time.sleep(USERS_CHECK_SECONDS)
            with suppress(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
        # The lock is held until the end, so that no command joins a server that is stopping.
        server.should_exit = True
        time.sleep(STOP_GRACE_SECONDS)
        os._exit(1)


if __name__ == "__main__":
    inherited = socket.socket(fileno=int(sys.argv[1]))
    main(inherited, Home(Path(sys.argv[2])), is_lasting=sys.argv[3] == "lasting")
