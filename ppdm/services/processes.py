"""Servers as processes: start one, recognise it by its record, ask for its health, stop it."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

STOP_GRACE_SECONDS = 5.0  # between SIGTERM and SIGKILL


@dataclass(frozen=True)
class ServerProcess:
    """The record of a server: enough to distinguish its process from any other."""

    pid: int  # also of its process group, which it leads
    started: str
    port: int
    word: str  # a word of its command line
    health: str  # path of the page that responds when the server is ready

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def is_alive(self) -> bool:
        identity = read_identity(self.pid)
        if identity is None:
            return False
        started, command = identity
        return started == self.started and self.word in command and f" {self.port} " in command

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
        if not self.is_alive:
            return
        for number in (signal.SIGTERM, signal.SIGKILL):
            deadline = time.monotonic() + STOP_GRACE_SECONDS
            with suppress(ProcessLookupError):
                os.killpg(self.pid, number)
            while self._has_group_members() and time.monotonic() < deadline:
                time.sleep(0.02)

    def _has_group_members(self) -> bool:
        with suppress(ChildProcessError):  # only if this process started it; else init does
            os.waitpid(self.pid, os.WNOHANG)
        with suppress(ProcessLookupError):
            os.killpg(self.pid, 0)
            return self.is_alive or bool(list_group_members(self.pid))
        return False


def spawn_server(
    arguments: Sequence[str], *, listener: socket.socket, environment: Mapping[str, str], log: Path
) -> subprocess.Popen[bytes]:
    """Start a module of this package as a process that inherits the bound socket.

    No other process can take the port in between, and a client that connects too early waits in
    the queue of the socket.
    """
    with open(log, "wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", *arguments],
            cwd=Path(__file__).resolve().parents[2],
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            pass_fds=[listener.fileno()],
            start_new_session=True,  # Ctrl-C is for the command
        )
    process.returncode = 0  # it may outlive this command, and Popen would warn of that
    return process


def identify_process(pid: int, port: int, word: str, health: str) -> ServerProcess:
    """Return the record of a process that runs now."""
    identity = read_identity(pid)
    return ServerProcess(pid, identity[0] if identity else "", port, word, health)


def write_own_record(record: Path, port: int, word: str, health: str) -> None:
    """Write the record of this process: its parent may have been killed before it did so."""
    write_record(record, identify_process(os.getpid(), port, word, health))


def open_listener(port: int) -> socket.socket:
    """Return a listening socket on the port if it is free, else on any free port."""
    for candidate in (port, 0):
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", candidate))
            listener.listen(128)
        except OSError:
            listener.close()
            if candidate == 0:
                raise
        else:
            return listener
    raise AssertionError("unreachable")


def read_record(path: Path) -> ServerProcess | None:
    """Return the record in a file, or None if it is absent or of another version."""
    try:
        return ServerProcess(**json.loads(path.read_text()))
    except (OSError, ValueError, TypeError):
        return None


def write_record(path: Path, server: ServerProcess) -> None:
    """Write a record atomically."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    draft.write_text(json.dumps(asdict(server)))
    draft.rename(path)


def read_identity(pid: int) -> tuple[str, str] | None:
    """Return start time and command line of a process; a zombie has an empty command line."""
    folder = Path("/proc", str(pid))
    if not Path("/proc/self").exists():
        return _read_identity_with_ps(pid)
    try:
        fields = _read_stat_fields(folder)
        command = (folder / "cmdline").read_bytes()
    except OSError:
        return None
    return fields[19], command.replace(b"\0", b" ").decode(errors="replace")


def list_group_members(group: int) -> list[int]:
    """Return the pids of a process group without zombies, which only their parent can end."""
    if not Path("/proc/self").exists():
        listing = ["pgrep", "-g", str(group)]
        output = subprocess.run(listing, capture_output=True, text=True, check=False).stdout
        return [int(pid) for pid in output.split()]
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            fields = _read_stat_fields(folder)
            if fields[2] == str(group) and fields[0] != "Z":
                found.append(int(folder.name))
    return found


def _read_stat_fields(folder: Path) -> list[str]:
    """Return state, parent, group and the other fields that follow the name of a process."""
    return (folder / "stat").read_text().rpartition(")")[2].split()


def _read_identity_with_ps(pid: int) -> tuple[str, str] | None:
    listing = ["ps", "-o", "lstart=,command=", "-p", str(pid)]
    line = subprocess.run(listing, capture_output=True, text=True, check=False).stdout.strip()
    return (line[:24], line[24:] + " ") if line else None
