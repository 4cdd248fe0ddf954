"""The interface of engines: run a pure step on every part somewhere, and keep their order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Self, TypeVar

from ppdm_core.model.errors import MachineTrouble
from warehouse.engines._messages import Reply, StepMessage, pack_value, unpack_value
from warehouse.engines.settings import EngineSettings

P = TypeVar("P")
S = TypeVar("S")
PARTS_PER_WORKER = 4  # so that a slow worker does not hold up all others
MAX_PART_BLOCKS = 64  # about a million rows
MAX_LOSSES = 3  # of workers that run the same part
Report = Callable[[int, int], None]  # receives the number of parts that are done, and of all


class Engine(ABC):
    """Workers that run steps; a context that ends what it started.

    Its settings are bad input until it is open; later they are a problem of the machines.

    A step is a pure function of a part, and returns everything that it learned: it may run in
    another process, twice, or in any order.
    """

    name: ClassVar[str]
    keeps_parts: ClassVar[bool] = False  # parts of a run that failed are used by the next one
    runs_attacks: ClassVar[bool] = False  # one process attacks a release else

    def __init__(self, settings: EngineSettings, report: Report | None = None) -> None:
        self.settings = settings
        self.report = report or (lambda done, count: None)

    def __enter__(self) -> Self:
        return self

    @abstractmethod
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

    @property
    @abstractmethod
    def workers(self) -> int:
        """The number of workers, 1 or more."""

    @abstractmethod
    def submit(self, step: bytes, part: bytes) -> Any:
        """Hand a message to a worker; return a handle."""

    @abstractmethod
    def wait(self, handles: Sequence[Any]) -> list[tuple[Any, bytes | None]]:
        """Return finished handles with their replies; None: the worker of this one is lost."""

    @abstractmethod
    def check_folder(self, folder: Path) -> None:
        """Raise BadInput if a worker does not see a folder, which exists."""

    def choose_part_blocks(self, blocks: int) -> int:
        """Return how many blocks a part of a table has; no result depends on it."""
        fair = -(-blocks // (PARTS_PER_WORKER * self.workers))
        return self.settings.part_blocks or max(1, min(MAX_PART_BLOCKS, fair))

    def run(self, step: Callable[[P], S], parts: Sequence[P]) -> Generator[S, None, None]:
        """Yield the result of ``step`` for every part, in their order.

        A part whose worker dies runs again on another one. Parts that still run when the caller
        stops asking, or closes the generator, are cancelled.
        """
        message: StepMessage[P, S] = StepMessage(step)
        waiting = deque(range(len(parts)))
        running: dict[Any, int] = {}
        found: dict[int, S] = {}
        losses: Counter[int] = Counter()
        due = done = 0
        try:
            while due < len(parts):
                while waiting and len(running) < 2 * self.workers:
                    number = waiting.popleft()
                    running[self.submit(message.data, pack_value(parts[number]))] = number
                for handle, data in self.wait(list(running)):
                    number = running.pop(handle)
                    if data is None:
                        losses[number] += 1
                        check_losses(losses[number], number)
                        waiting.appendleft(number)
                        continue
                    reply: Reply[S] = unpack_value(data)
                    if reply.missing is not None:
                        message.grant(reply.missing)
                        waiting.appendleft(number)
                        continue
                    if reply.error is not None:
                        raise reply.error
                    found[number] = reply.value  # type: ignore[assignment]
                    done += 1
                    self.report(done, len(parts))
                while due in found:
                    yield found.pop(due)
                    due += 1
        finally:
            self.cancel(list(running))

    def cancel(self, handles: Sequence[Any]) -> None:
        """Give up messages whose replies are no longer needed."""
        for handle in handles:
            handle.cancel()


def check_losses(losses: int, number: int) -> None:
    """Raise MachineTrouble if too many workers were lost with the same part."""
    if losses >= MAX_LOSSES:
        raise MachineTrouble(
            f"{losses} workers died while they worked on part {number + 1}.",
            remedy="Give workers more memory, or more disk, and run the same command again.",
        )
