"""Commands of the steward that run when a release ends.

They are in `hooks.toml` of the home, which only its owner may read or write (mode 600). No release
file, policy or parameter of a flow can name a command:

    [[hook]]
    command = ["/usr/local/bin/notify", "--channel", "releases"]

Each command is started without a shell and gets one JSON object on standard input: id, dataset and
outcome. A hook that fails, or that is killed at the time limit, is an event of the history and
changes nothing else.
"""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import time
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ppdm_core.model.errors import BadInput, PpdmError
from tasks.progress import log_progress
from warehouse.database import Store
from warehouse.home import Home
from warehouse.integrity.events import append_event
from warehouse.stages import Stage

FAILED = "hook failed"  # kind of an event
MODE = 0o600
MAX_FILE_BYTES = 65_536
TIME_LIMIT_SECONDS = 10.0  # for all hooks together, which run at the same time
KEPT_VARIABLES = ("HOME", "LANG", "PATH", "TZ", "USER")  # of the environment
EXAMPLE = 'Write for each: [[hook]], then command = ["/path/to/program", "argument"].'


class OtherOwner(BadInput):
    """The hooks are those of another user, who alone may run them."""


@dataclass(frozen=True)
class Hook:
    """A command that runs when a release ends."""

    number: int  # place in the file, from 1
    command: tuple[str, ...]


@dataclass(frozen=True)
class HookFailure:
    """Why a hook did not succeed; nothing of its arguments or output."""

    number: int | None  # None: the file could not be used
    why: str


def check_hooks(home: Home) -> None:
    """Raise BadInput if the hooks of the current user cannot be used."""
    with suppress(OtherOwner):
        read_hooks(home)


def read_hooks(home: Home) -> list[Hook]:
    """Return the hooks of a home; raise BadInput unless only their owner can write them."""
    path = home.hooks
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return []
    except PermissionError:
        raise describe_owner(path) from None
    except OSError:
        raise build_error(
            path, "is a link, or cannot be read", "Put the file itself there."
        ) from None
    with os.fdopen(descriptor, "rb") as file:
        check_access(path, os.fstat(descriptor))
        raw = file.read(MAX_FILE_BYTES)
    return parse_hooks(path, raw)


def check_access(path: Path, found: os.stat_result) -> None:
    """Check that a file is a regular one that only the current user can read and write."""
    if not stat.S_ISREG(found.st_mode):
        raise build_error(path, "is not a file", "Put a file there.")
    if found.st_uid != os.geteuid():
        raise describe_owner(path)
    mode = stat.S_IMODE(found.st_mode)
    if mode != MODE:
        raise build_error(path, f"has mode {mode:o}, not {MODE:o}", f"Run: chmod 600 {path}")


def parse_hooks(path: Path, raw: bytes) -> list[Hook]:
    """Return the hooks in the bytes of a file."""
    try:
        content = tomllib.loads(raw.decode())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError):
        raise build_error(path, "is not TOML", EXAMPLE) from None
    entries: Any = content.get("hook")
    if set(content) != {"hook"} or not isinstance(entries, list):
        raise build_error(path, "does not hold a list of hooks alone", EXAMPLE)
    return [parse_hook(path, number, entry) for number, entry in enumerate(entries, start=1)]


def parse_hook(path: Path, number: int, entry: Any) -> Hook:
    """Return one hook; its program is an absolute path, so that no other one can take its place."""
    command = entry.get("command") if isinstance(entry, dict) and len(entry) == 1 else None
    if (
        not isinstance(command, list)
        or not command
        or not all(isinstance(word, str) and "\0" not in word for word in command)
    ):
        raise build_error(path, f"has no list of words as the command of hook {number}", EXAMPLE)
    if not os.path.isabs(command[0]):
        raise build_error(
            path,
            f"does not name the program of hook {number} by its absolute path",
            "Write the path from the root: /usr/local/bin/notify.",
        )
    return Hook(number, tuple(command))


def build_error(path: Path, what: str, remedy: str) -> BadInput:
    """Return the error of a file that cannot be used."""
    return BadInput(f"{path.name} of the home {what}.", file=str(path), remedy=remedy)


def describe_owner(path: Path) -> OtherOwner:
    """Return the error of a file of another user."""
    return OtherOwner(
        f"{path.name} of the home belongs to another user, so its hooks were not run.",
        file=str(path),
        remedy="Ask that user, or remove the file.",
    )


def run_hooks(store: Store, dataset: str, release_id: str | None, outcome: Stage) -> None:
    """Run the hooks of a home for a release that ended; record the failures.

    ``release_id`` is None if bad input was found before a run began. No failure is raised.
    """
    payload = {"id": release_id, "dataset": dataset, "outcome": str(outcome)}
    failures = list(find_failures(store.home, json.dumps(payload).encode()))
    for failure in failures:
        name = "Hooks" if failure.number is None else f"Hook {failure.number}"
        log_progress(f"{name}: {failure.why} The release does not depend on it.")
    if failures and store.home.database.exists():
        with suppress(PpdmError), store.transaction("hooks") as db:
            for failure in failures:
                detail = {"hook": failure.number, "why": failure.why}
                append_event(db, dataset, release_id or "", FAILED, detail)


def find_failures(home: Home, payload: bytes) -> Iterator[HookFailure]:
    """Run all hooks at the same time, and yield those that did not succeed in time."""
    try:
        hooks = read_hooks(home)
    except BadInput as error:
        yield HookFailure(None, error.message)
        return
    deadline = time.monotonic() + TIME_LIMIT_SECONDS
    started = []
    for hook in hooks:
        try:
            started.append((hook, start_hook(hook, payload)))
        except OSError as error:
            yield HookFailure(hook.number, f"It cannot be started: {error.strerror}.")
    for hook, process in started:
        why = await_hook(process, deadline)
        if why is not None:
            yield HookFailure(hook.number, why)


def start_hook(hook: Hook, payload: bytes) -> subprocess.Popen[bytes]:
    """Start a command in a session of its own, with the payload and nothing else of the release."""
    process = subprocess.Popen(
        hook.command,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        env={name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ},
        start_new_session=True,
    )
    assert process.stdin is not None
    with suppress(BrokenPipeError):  # it need not read; so short a text never waits for a reader
        process.stdin.write(payload)
        process.stdin.close()
    return process


def await_hook(process: subprocess.Popen[bytes], deadline: float) -> str | None:
    """Return why a hook did not succeed; None if it did. It is killed at the deadline."""
    try:
        code = process.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return f"It was killed after {TIME_LIMIT_SECONDS:.0f} s."
    return None if code == 0 else f"It ended with exit code {code}."
