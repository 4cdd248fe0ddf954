"""The process that attacks: `python -m tasks.audit.attack_worker PARENT`.

Its parent kills it when it hangs, and it ends itself when its parent was killed.

It reads pickled messages on standard input, first the evidence, then names of audits or questions
of the self-test, and answers each with what it found, the reason why it does not apply, or the type
of the error. Never with an error's message: that may quote a value.
"""

from __future__ import annotations

import os
import pickle
import struct
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from ppdm_core.model.policy import Policy

if TYPE_CHECKING:
    from ppdm_core.audit.runner import Auditor


@dataclass(frozen=True, eq=False)
class Job:
    """Where the evidence is, and what the auditor needs beside it."""

    folder: str
    shadows: int
    halves: int
    policy: Policy
    seed: bytes
    has_past: bool = False  # earlier releases of the same records

    def read(self, name: str) -> Any:
        return pickle.loads((Path(self.folder) / name).read_bytes())

    def shape(self) -> tuple[int, ...]:
        """Records and columns."""
        shape: tuple[int, ...] = self.read("truth").X.shape
        return shape

    def auditor(self) -> Auditor:
        from ppdm_core.audit.runner import Auditor

        draws = [self.read(f"shadow_{k}") for k in range(self.shadows)]
        halves = [self.read(f"half_{k}") for k in range(self.halves)]
        past = self.read("past") if self.has_past else None
        return Auditor(self.read("truth"), draws, self.policy, self.seed, halves, past)


def send(stream: BinaryIO, message: object) -> None:
    data = pickle.dumps(message)
    stream.write(struct.pack("<Q", len(data)) + data)
    stream.flush()


def receive(stream: BinaryIO) -> Any:
    header = stream.read(8)
    size = struct.unpack("<Q", header)[0] if len(header) == 8 else 1
    data = stream.read(size)
    if len(data) < size:
        raise EOFError
    return pickle.loads(data)


def serve(incoming: BinaryIO, outgoing: BinaryIO) -> None:
    from ppdm_core.model.errors import NotApplicable

    preload()
    try:
        job: Job = receive(incoming)
    except EOFError:  # a spare one that nobody needed
        return
    auditor = job.auditor()
    while True:
        try:
            name = receive(incoming)
        except EOFError:
            return
        try:
            found = auditor.run(name) if isinstance(name, str) else name.answer(auditor)
            answer: tuple[str, object] = ("scores", found)
        except NotApplicable as why:
            answer = ("skipped", str(why))
        except Exception as error:  # noqa: BLE001  a recorded failure, which the gate turns into FAIL
            answer = ("failed", type(error).__name__)
        send(outgoing, answer)


def preload() -> None:
    """What attacks import when they need it, while there is nothing to attack yet."""
    import scipy.optimize
    import scipy.spatial.distance
    import scipy.special

    import ppdm_core.audit.runner

    assert ppdm_core.audit.runner and scipy.optimize and scipy.spatial.distance and scipy.special


def end_with(parent: int) -> None:
    """A parent that was killed cannot end an attack that hangs."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


if __name__ == "__main__":
    threading.Thread(target=end_with, args=(int(sys.argv[1]),), daemon=True).start()
    # Whatever an attack prints must not be taken for an answer.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    from tasks.audit import attack_worker as audit_worker

    audit_worker.serve(sys.stdin.buffer, answers)
