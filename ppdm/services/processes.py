"""Servers as processes: how one is recognised for certain, asked for its health, and ended."""

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

STOP_GRACE = 5.0  # seconds between asking and killing


@dataclass(frozen=True)
class Running:
    """What a record says of a server: enough to know its process from any other."""

    pid: int  # also of its process group, which it leads
    started: str
    port: int
    word: str  # of its command line
    health: str  # the page that answers when it is ready

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def is_alive(self) -> bool:
        identity = identity_of(self.pid)
        if identity is None:
            return False
        started, command = identity
        return started == self.started and self.word in command and f" {self.port} " in command

    def answers(self, patience: float) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=patience)
        try:
            connection.request("GET", self.health)
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def stop(self) -> None:
        """Ask it and its children to end, then insist. Does nothing to a process not ours."""
        if not self.is_alive:
            return
        for ask in (signal.SIGTERM, signal.SIGKILL):
            deadline = time.monotonic() + STOP_GRACE
            with suppress(ProcessLookupError):
                os.killpg(self.pid, ask)
            while self._has_members() and time.monotonic() < deadline:
                time.sleep(0.02)

    def _has_members(self) -> bool:
        with suppress(ChildProcessError):  # only if this process started it; else init does
            os.waitpid(self.pid, os.WNOHANG)
        with suppress(ProcessLookupError):
            os.killpg(self.pid, 0)
            return self.is_alive or bool(members(self.pid))
        return False


def spawn_server(
    arguments: Sequence[str], *, listener: socket.socket, environment: Mapping[str, str], log: Path
) -> subprocess.Popen[bytes]:
    """Start a module of ours that inherits the bound socket: nobody can take the port in between,
    and whoever connects too early waits in its queue."""
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


def running_as(pid: int, port: int, word: str, health: str) -> Running:
    identity = identity_of(pid)
    return Running(pid, identity[0] if identity else "", port, word, health)


def record_self(record: Path, port: int, word: str, health: str) -> None:
    """Whoever started this process may have been killed before it wrote that down."""
    write_record(record, running_as(os.getpid(), port, word, health))


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


def read_record(path: Path) -> Running | None:
    try:
        return Running(**json.loads(path.read_text()))
    except (OSError, ValueError, TypeError):  # absent, or of another version
        return None


def write_record(path: Path, running: Running) -> None:
    """Whole or not at all."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    draft.write_text(json.dumps(asdict(running)))
    draft.rename(path)


def identity_of(pid: int) -> tuple[str, str] | None:
    """Start time and command line of a process; a zombie has no command line."""
    folder = Path("/proc", str(pid))
    if not Path("/proc/self").exists():
        return _identity_by_ps(pid)
    try:
        fields = _fields(folder)
        command = (folder / "cmdline").read_bytes()
    except OSError:
        return None
    return fields[19], command.replace(b"\0", b" ").decode(errors="replace")


def members(group: int) -> list[int]:
    """The living processes of a group; zombies wait for somebody else's parent."""
    if not Path("/proc/self").exists():
        listing = ["pgrep", "-g", str(group)]
        found = subprocess.run(listing, capture_output=True, text=True, check=False).stdout
        return [int(pid) for pid in found.split()]
    found_here = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            fields = _fields(folder)
            if fields[2] == str(group) and fields[0] != "Z":
                found_here.append(int(folder.name))
    return found_here


def _fields(folder: Path) -> list[str]:
    """State, parent, group ... of a process: what follows its name."""
    return (folder / "stat").read_text().rpartition(")")[2].split()


def _identity_by_ps(pid: int) -> tuple[str, str] | None:
    listing = ["ps", "-o", "lstart=,command=", "-p", str(pid)]
    line = subprocess.run(listing, capture_output=True, text=True, check=False).stdout.strip()
    return (line[:24], line[24:] + " ") if line else None
