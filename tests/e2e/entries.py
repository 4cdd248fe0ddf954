"""What the tests run in place of ``ppdm`` itself: the same commands, with something injected."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from warehouse import checkpoints

KEY = bytes(range(32))


def with_key(args: list[str]) -> None:
    """A dataset's first key is always the same one, so that two homes can be compared."""
    import flows.cli
    import tasks.keys

    class Known:
        @staticmethod
        def token_bytes(n: int) -> bytes:
            return KEY

    tasks.keys.secrets = Known  # type: ignore[assignment]
    flows.cli.main(args)


def noted(args: list[str]) -> None:
    """Writes the name of every checkpoint to the file that is the first argument."""
    path = Path(args[0])

    def note(name: str) -> None:
        with path.open("a") as file:
            file.write(name + "\n")

    checkpoints.LISTENERS.append(note)
    with_key(args[1:])


def killed(args: list[str]) -> None:
    """Dies at the checkpoint that is the first argument."""

    def strike(name: str) -> None:
        if name == args[0]:
            sys.stdout.flush()
            os.kill(os.getpid(), signal.SIGKILL)

    checkpoints.LISTENERS.append(strike)
    with_key(args[1:])
