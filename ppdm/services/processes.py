"""Servers as processes: start one, recognise it by its record, wait until it responds, stop it."""

from __future__ import annotations

import http.client
import json
import os
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from ppdm_core.model.errors import MachineTrouble

LogMessage = Callable[[str], None]

STOP_GRACE_SECONDS = 5.0  # between SIGTERM and SIGKILL
START_LIMIT_SECONDS = 180.0  # the first start on a home also creates the database
WAIT_MESSAGE_SECONDS = 10.0  # between messages while a server starts
HEALTH_CHECK_SECONDS = 0.1


@dataclass(frozen=True)
class ServerProcess:
    """The record of a server: enough to distinguish its process from any other.

    The process is identified by its pid and its arguments, which name the home. Its creation time
    would change whenever the clock of the machine is corrected.
    """

    pid: int
    arguments: str
    port: int
    health: str  # path of the page that responds when the server is ready

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def is_alive(self) -> bool:
        return self._find_process() is not None

    def _find_process(self) -> psutil.Process | None:
        with suppress(psutil.Error):
            process = psutil.Process(self.pid)
            if shlex.join(process.cmdline()[1:]) == self.arguments:
                return process
        return None

    def is_healthy(self, timeout: float) -> bool:
        """Return whether the health page responds within ``timeout`` seconds."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            connection.request("GET", self.health)
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def stop(self) -> None:
        """Terminate the server and its children, then kill them; ignore a foreign process."""
        process = self._find_process()
        if process is None:
            return
        left = [process]
        with suppress(psutil.NoSuchProcess):
            left += process.children(recursive=True)
        for send in (psutil.Process.terminate, psutil.Process.kill):
            for each in left:
                with suppress(psutil.NoSuchProcess):
                    send(each)
            left = psutil.wait_procs(left, timeout=STOP_GRACE_SECONDS)[1]


def spawn_server(
    module: str, arguments: Sequence[str], *, port: int, health: str, record: Path, log: Path
) -> ServerProcess:
    """Start a module of this package on the port, or on a free one, and write its record.

    The process inherits the bound socket: no other process can take the port in between, and a
    client that connects too early waits in the queue of the socket.
    """
    with open_listener(port) as listener, log.open("wb") as output:
        given = ["-m", module, str(listener.fileno()), *arguments]
        process = subprocess.Popen(
            [sys.executable, *given],
            cwd=Path(__file__).resolve().parents[2],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            pass_fds=[listener.fileno()],
            start_new_session=True,  # Ctrl-C is for the command
        )
        server = ServerProcess(process.pid, shlex.join(given), listener.getsockname()[1], health)
    process.returncode = 0  # it may outlive this command, and Popen would warn of that
    write_record(record, server)
    return server


def open_listener(port: int) -> socket.socket:
    """Return a listening socket on the port if it is free, else on any free port."""
    try:
        return socket.create_server(("127.0.0.1", port), backlog=128)
    except OSError:
        return socket.create_server(("127.0.0.1", 0), backlog=128)


def read_record(path: Path) -> ServerProcess | None:
    """Return the record in a file, or None if it is absent, of another version or another home.

    A copied home contains the record of a server that belongs to the original.
    """
    try:
        server = ServerProcess(**json.loads(path.read_text()))
        named = [Path(part).resolve() for part in shlex.split(str(server.arguments))]
    except (OSError, ValueError, TypeError):
        return None
    return server if any(home in path.resolve().parents for home in named) else None


def write_record(path: Path, server: ServerProcess) -> None:
    """Write a record atomically."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    draft.write_text(json.dumps(asdict(server)))
    draft.rename(path)


def write_own_record(path: Path, port: int, health: str) -> None:
    """Write the record of this process: its parent may have been killed before it did so."""
    arguments = shlex.join(sys.orig_argv[1:])
    write_record(path, ServerProcess(os.getpid(), arguments, port, health))


def wait_for_health(process: ServerProcess, name: str, log: Path, log_message: LogMessage) -> None:
    """Wait until a server responds; raise MachineTrouble if it ends or takes too long.

    A request to a server that listens already waits in its queue; else it is repeated.
    """
    start = time.monotonic()
    timeout = 1.0
    last_message = start - WAIT_MESSAGE_SECONDS + timeout
    while not process.is_healthy(timeout):
        now = time.monotonic()
        if now - start > START_LIMIT_SECONDS or not process.is_alive:
            what = "did not respond in time" if process.is_alive else "ended while it started"
            raise MachineTrouble(
                f"The local {name} server {what}.",
                remedy=f"See {log}, then run the same command again.",
            )
        if now - last_message >= WAIT_MESSAGE_SECONDS:
            log_message(f"Waiting for the local {name} server ({now - start:.0f} s).")
            last_message, timeout = now, WAIT_MESSAGE_SECONDS
        time.sleep(HEALTH_CHECK_SECONDS)
