"""The attack process: `python -m tasks.audit.attack_worker PARENT`.

Its parent kills it when it hangs, and it ends itself when its parent was killed.

It reads pickled messages on standard input: first the job, then names of audits or questions of
the self-test. It replies to each with an ``Attempt``: what was found, the reason why it does not
apply, or the type of the error. It never sends an error's message, which may quote a value.
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
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

from ppdm_core.model.policy import Policy

if TYPE_CHECKING:
    from ppdm_core.audit.auditor import Auditor
    from ppdm_core.audit.runner import Attempt


class Question(Protocol):
    """Something else than an audit that the attack process is asked."""

    def answer(self, auditor: Auditor) -> Any: ...


@dataclass(frozen=True, eq=False)
class AttackJob:
    """Where the inputs of the attacks are, and what the auditor needs in addition."""

    folder: str
    shadows: int
    halves: int
    policy: Policy
    seed: bytes
    has_earlier: bool = False  # earlier releases of the same records

    def read(self, name: str) -> Any:
        """Load one input by name."""
        return pickle.loads((Path(self.folder) / name).read_bytes())

    def shape(self) -> tuple[int, ...]:
        """Return the number of records and of columns."""
        shape: tuple[int, ...] = self.read("truth").X.shape
        return shape

    def make_auditor(self) -> Auditor:
        """Load all inputs."""
        from ppdm_core.audit.auditor import Auditor

        draws = [self.read(f"shadow_{k}") for k in range(self.shadows)]
        halves = [self.read(f"half_{k}") for k in range(self.halves)]
        earlier = self.read("past") if self.has_earlier else None
        return Auditor(self.read("truth"), draws, self.policy, self.seed, halves, earlier)


def send(stream: BinaryIO, message: object) -> None:
    """Write a message with its length."""
    data = pickle.dumps(message)
    stream.write(struct.pack("<Q", len(data)) + data)
    stream.flush()


def receive(stream: BinaryIO) -> Any:
    """Read a message; raise EOFError if the stream ends before it does."""
    header = stream.read(8)
    size = struct.unpack("<Q", header)[0] if len(header) == 8 else 1
    data = stream.read(size)
    if len(data) < size:
        raise EOFError
    return pickle.loads(data)


def serve(incoming: BinaryIO, outgoing: BinaryIO) -> None:
    """Answer messages until the stream ends."""
    preload()
    try:
        job: AttackJob = receive(incoming)
    except EOFError:  # a spare process that was not needed
        return
    auditor = job.make_auditor()
    while True:
        try:
            message = receive(incoming)
        except EOFError:
            return
        send(outgoing, reply(auditor, message))


def reply(auditor: Auditor, message: str | Question) -> Attempt[Any]:
    """Run an audit by name, or answer a question of the self-test."""
    from ppdm_core.audit.runner import attempt

    if isinstance(message, str):
        return auditor.run_one(message)
    return attempt(lambda: message.answer(auditor))


def preload() -> None:
    """Import what attacks need, while there is nothing to attack yet."""
    import scipy.optimize
    import scipy.spatial.distance
    import scipy.special

    import ppdm_core.audit.auditor

    assert ppdm_core.audit.auditor and scipy.optimize and scipy.spatial.distance and scipy.special


def exit_when_parent_ends(parent: int) -> None:
    """End this process when its parent is gone: a killed parent cannot end a hanging attack."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


if __name__ == "__main__":
    threading.Thread(target=exit_when_parent_ends, args=(int(sys.argv[1]),), daemon=True).start()
    # What an attack prints must not be read as a reply.
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    from tasks.audit import attack_worker  # messages are pickled under the module's real name

    attack_worker.serve(sys.stdin.buffer, replies)
