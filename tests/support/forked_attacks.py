"""Attack processes as children of the fork server, without the import time of a new interpreter.

The tests of the attack process itself, of kills and of broken attacks start it as a release does.
Many tests release the same table by the same policy and the same key: what an attack finds there
is computed once in a test run.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import pickle
import threading
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import tasks.audit.attack_process
import tasks.audit.attack_worker
from ppdm_core.audit.self_test.known_answers import KnownAnswersQuestion
from tests.support.shared_files import HOME

ROOT = Path(__file__).resolve().parents[2]


def fork_attacks() -> None:
    """Let this process, a child of the fork server, take its attack processes from there."""
    forkserver._forkserver.ensure_running = lambda: None  # type: ignore[method-assign]
    tasks.audit.attack_process.spawn = ForkedProcess  # type: ignore[assignment]


class ForkedProcess:
    """What a release uses of ``subprocess.Popen``."""

    def __init__(self) -> None:
        theirs_in, ours_in = multiprocessing.Pipe(duplex=False)
        ours_out, theirs_out = multiprocessing.Pipe(duplex=False)
        process: Any = multiprocessing.get_context("forkserver").Process(
            target=serve, args=(dict(os.environ), theirs_in, theirs_out), daemon=True
        )
        process.start()
        theirs_in.close()
        theirs_out.close()
        self._process, self.pid = process, process.pid
        self.stdin, self.stdout = open_end(ours_in, "wb"), open_end(ours_out, "rb")

    def poll(self) -> int | None:
        return self._process.exitcode  # type: ignore[no-any-return]

    def kill(self) -> None:
        self._process.kill()

    def communicate(self) -> None:
        self._process.join()
        self.stdout.close()
        with suppress(BrokenPipeError):  # what was not sent yet
            self.stdin.close()


def open_end(end: Connection, mode: str) -> Any:
    """Return one end of a pipe as a file."""
    file = os.fdopen(os.dup(end.fileno()), mode)
    end.close()
    return file


def serve(environment: dict[str, str], incoming: Connection, outgoing: Connection) -> None:
    """Run as ``python -m tasks.audit.attack_worker`` does."""
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(ROOT)
    if "PPDM_TESTS_MUTANT" in environment:
        from tests.support.mutants import mutate

        mutate()
    else:
        remember_replies()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nowhere, number)
    threading.Thread(target=exit_with_parent, daemon=True).start()
    tasks.audit.attack_worker.serve(open_end(incoming, "rb"), open_end(outgoing, "wb"))


def remember_replies() -> None:
    """Let this process find replies to the same message about the same auditor in a shared file.

    Leak tests are about no auditor: those of an attack are run once in a test run.
    """
    worker, loaded = tasks.audit.attack_worker, list[bytes]()
    compute = worker.reply

    def reply(auditor: Any, message: Any) -> Any:
        if not loaded:  # the records, all draws, the policy and the seed, before any attack
            loaded.append(digest(pickle.dumps(auditor)))
        about = b"" if isinstance(message, KnownAnswersQuestion) else loaded[0]
        name = digest(about + repr(message).encode()).hex()
        path = Path(os.environ[HOME], "shared", name)
        return read_or_make(path, lambda: compute(auditor, message))

    worker.reply = reply


def digest(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()


def read_or_make(path: Path, make: Callable[[], Any]) -> Any:
    """Return the pickled content of a file; make it if there is none."""
    with suppress(FileNotFoundError):
        return pickle.loads(path.read_bytes())
    found = make()
    unfinished = path.with_suffix(f".{os.getpid()}")
    unfinished.write_bytes(pickle.dumps(found))
    unfinished.rename(path)
    return found


def exit_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
