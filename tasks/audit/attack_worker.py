"""The attack process: `python -m tasks.audit.attack_worker PARENT`.

Its parent kills it when it hangs, and it ends itself when its parent was killed.

It reads pickled messages on standard input: first the job, then names of audits or questions of
the self-test. It replies to each with an ``Attempt``: what was found, the reason why it does not
apply, or the type of the error. It never sends an error's message, which may quote a value.
"""

from __future__ import annotations

import os
import pickle
import signal
import struct
import sys
import threading
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

from ppdm_core.model.policy import Policy

if TYPE_CHECKING:
    from ppdm_core.audit.auditor import Auditor
    from ppdm_core.audit.runner import Attempt


class Question(Protocol):
    """Something else than an audit that the attack process is asked."""

    def answer(self, auditor: Any) -> Any: ...


@dataclass(frozen=True, eq=False)
class AttackJob(ABC):
    """What is attacked under which policy; each kind of audit has its own job."""

    policy: Policy
    seed: bytes

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """The number of records and of numeric columns."""

    @property
    @abstractmethod
    def draws(self) -> int:
        """The number of releases that are attacked."""

    @abstractmethod
    def make_auditor(self) -> Auditor | None:
        """Load all inputs; None if there is no table."""


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


def reply(auditor: Auditor | None, message: str | Question) -> Attempt[Any]:
    """Run an audit by name, or answer a question of the self-test."""
    from ppdm_core.audit.runner import attempt

    if not isinstance(message, str):
        return attempt(lambda: message.answer(auditor))
    assert auditor is not None
    return auditor.run_one(message)


def preload() -> None:
    """Import what attacks need, while there is nothing to attack yet."""
    import pyarrow.parquet
    import scipy.optimize
    import scipy.spatial.distance
    import scipy.special

    import ppdm_core.audit.auditor

    assert ppdm_core.audit.auditor and pyarrow.parquet
    assert scipy.optimize and scipy.spatial.distance and scipy.special


def exit_when_parent_ends(parent: int) -> None:
    """End this process when its parent is gone: a killed parent cannot end a hanging attack."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends this process
    threading.Thread(target=exit_when_parent_ends, args=(int(sys.argv[1]),), daemon=True).start()
    # What an attack prints must not be read as a reply.
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    from tasks.audit import attack_worker  # messages are pickled under the module's real name

    attack_worker.serve(sys.stdin.buffer, replies)
