"""Servers as processes: how one is recognised for certain, asked for its health, and ended."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import time
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


def running_as(process: subprocess.Popen[bytes], port: int, word: str, health: str) -> Running:
    process.returncode = 0  # it may outlive this command, and Popen would warn of that
    identity = identity_of(process.pid)
    return Running(process.pid, identity[0] if identity else "", port, word, health)


def read_record(path: Path) -> Running | None:
    try:
        return Running(**json.loads(path.read_text()))
    except (FileNotFoundError, ValueError, TypeError):  # absent, or cut off by a kill
        return None


def write_record(path: Path, running: Running) -> None:
    path.write_text(json.dumps(asdict(running)))


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
