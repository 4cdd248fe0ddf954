"""The shared Prefect server as a process: how it is started, recognised, ended, and what it runs.

Run as ``python -m flows.server_process PORT SOCKET USERS``.
"""

from __future__ import annotations

import fcntl
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

STOP_GRACE = 5.0  # seconds between asking and killing
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


@dataclass(frozen=True)
class Running:
    """What ``server.json`` says of a server: enough to recognise its process for certain."""

    pid: int
    started: str
    port: int

    @property
    def is_alive(self) -> bool:
        identity = _identity(self.pid)
        if identity is None:
            return False
        started, command = identity
        return started == self.started and f"flows.server_process {self.port} " in command

    def answers(self, patience: float) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=patience)
        try:
            connection.request("GET", "/api/health")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def stop(self) -> None:
        """Ask it to end, then insist. Does nothing to a process that is not ours."""
        for ask, patience in ((signal.SIGTERM, STOP_GRACE), (signal.SIGKILL, STOP_GRACE)):
            deadline = time.monotonic() + patience
            if not self.is_alive:
                return
            with suppress(ProcessLookupError):
                os.kill(self.pid, ask)
            while self.is_alive and time.monotonic() < deadline:
                time.sleep(0.02)
                self._collect()

    def _collect(self) -> None:
        # Only if this process started it; else init does.
        with suppress(ChildProcessError):
            os.waitpid(self.pid, os.WNOHANG)


def read_record(path: Path) -> Running | None:
    try:
        return Running(**json.loads(path.read_text()))
    except (FileNotFoundError, ValueError, TypeError):  # absent, or cut off by a kill
        return None


def spawn(*, record: Path, users: Path, log: Path, prefect_home: Path) -> Running:
    """Start a server on a free port and write down who it is."""
    prefect_home.mkdir(parents=True, exist_ok=True)
    with socket.socket() as listener, open(log, "wb") as output:
        # The server inherits the bound socket: nobody can take the port in between, and whoever
        # connects too early waits in its queue.
        listener.bind(("127.0.0.1", 0))
        listener.listen(128)
        port, descriptor = listener.getsockname()[1], listener.fileno()
        module = [sys.executable, "-m", "flows.server_process"]
        process = subprocess.Popen(
            [*module, str(port), str(descriptor), str(users)],
            cwd=Path(__file__).resolve().parents[1],
            env=_environment(prefect_home, port),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            pass_fds=[descriptor],
            start_new_session=True,  # Ctrl-C is for the command
        )
    process.returncode = 0  # it may outlive this command, and Popen would warn of that
    identity = _identity(process.pid)
    running = Running(process.pid, identity[0] if identity else "", port)
    record.write_text(json.dumps(asdict(running)))
    return running


def _environment(prefect_home: Path, port: int) -> dict[str, str]:
    unused = {f"PREFECT_SERVER_SERVICES_{name}_ENABLED": "false" for name in UNUSED_SERVICES}
    environment = {
        **os.environ,
        **unused,
        "PREFECT_HOME": str(prefect_home),
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
        "PREFECT_SERVER_UI_API_URL": f"http://127.0.0.1:{port}/api",
        "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "WARNING",
        # Saves 4 s of the first start. No block is used; `prefect server start` adds them.
        "PREFECT_SERVER_REGISTER_BLOCKS_ON_START": "false",
        "PREFECT_SERVER_MEMOIZE_BLOCK_AUTO_REGISTRATION": "false",
    }
    environment.pop("PREFECT_API_URL", None)
    return environment


def _identity(pid: int) -> tuple[str, str] | None:
    """Start time and command line of a process; a zombie has no command line."""
    folder = Path("/proc", str(pid))
    if not Path("/proc/self").exists():
        return _identity_by_ps(pid)
    try:
        fields = (folder / "stat").read_text().rpartition(")")[2].split()
        command = (folder / "cmdline").read_bytes()
    except OSError:
        return None
    return fields[19], command.replace(b"\0", b" ").decode(errors="replace")


def _identity_by_ps(pid: int) -> tuple[str, str] | None:
    listing = ["ps", "-o", "lstart=,command=", "-p", str(pid)]
    line = subprocess.run(listing, capture_output=True, text=True, check=False).stdout.strip()
    return (line[:24], line[24:] + " ") if line else None


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


def main(descriptor: int, users: str) -> None:
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
    threading.Thread(target=_end_when_unused, args=(server, users), daemon=True).start()
    server.run(sockets=[socket.socket(fileno=descriptor)])


if __name__ == "__main__":
    main(int(sys.argv[2]), sys.argv[3])
