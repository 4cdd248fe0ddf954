"""A dask cluster of one owner, connected by TLS, whose workers hold the cluster key."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from ppdm_core.model.errors import BadInput, MachineTrouble, PpdmError
from warehouse.engines._connection import (
    AGAIN,
    CONNECT_SECONDS,
    check_connection,
    connect,
    lost_scheduler,
)
from warehouse.engines._engine import Engine, Report
from warehouse.engines._messages import pack_value, run_message, unpack_value
from warehouse.engines._sealing import read_cluster_key, seal, unseal
from warehouse.engines._worker_check import (
    CODE,
    REMEDIES,
    Description,
    check_worker,
    describe_process,
)
from warehouse.engines.cancellation import IS_WANTED
from warehouse.engines.settings import EngineSettings, translate_bad_input
from warehouse.home import create_private, translate_disk_errors

if TYPE_CHECKING:
    from dask.typing import Key
    from distributed import Client, Worker

Handle: TypeAlias = Any  # a future of dask, which has no types
CHECK_SECONDS = 120.0  # for workers to import this program and to compute the known block
POLL_SECONDS = 1.0
MAX_SECONDS_WITHOUT_WORKERS = 20.0  # a worker that is started again takes less


class Dask(Engine):
    """A dask cluster: scheduler and workers are processes of any machines."""

    name = "dask"
    keeps_parts = True
    runs_attacks = True

    def __init__(self, settings: EngineSettings, report: Report | None = None) -> None:
        super().__init__(settings, report)
        self.key = read_cluster_key(settings.secret)
        self.check = seal(self.key, pack_value(describe_process()))
        self.client: Client | None = None
        self.count = 1  # workers at the last look
        self.seen_at = time.monotonic()  # when there was a worker

    def __enter__(self) -> Self:
        check_connection(self.settings)
        self.client = connect(self.settings)
        try:
            self.check_workers()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        if self.client is not None:
            self.client.close(timeout=CONNECT_SECONDS)
            self.client = None

    @property
    def workers(self) -> int:
        return min(self.count, self.settings.workers or self.count)

    def check_workers(self) -> None:
        """Raise BadInput if there is no worker, or one that differs from this process."""
        here, found = describe_process(), self.ask_all(describe_process, None)
        self.count = len(found)
        for name, there in found.items():
            check_worker(name, there, here)

    def check_folder(self, folder: Path) -> None:
        token = secrets.token_hex(16)
        path = folder / f"seen-{secrets.token_hex(8)}"
        with translate_disk_errors(path), create_private(path) as file:
            file.write(token.encode())
        try:
            for name, found in self.ask_all(read_token, str(path)).items():
                if found != token:
                    raise BadInput(
                        f"{name} does not see the folder of the parts, {folder}.",
                        file=str(folder),
                        remedy="Name a folder that all workers reach: 'folder' in [engine].",
                    )
        finally:
            path.unlink(missing_ok=True)

    def list_workers(self) -> dict[str, str]:
        """Return the names of the workers that are there, with their addresses."""
        client = self.client
        assert client is not None
        if client.scheduler is None:  # the client found out that it is gone
            raise lost_scheduler(self.settings)
        try:  # of the scheduler itself: the client's own list is empty from time to time
            found = client.sync(
                client.scheduler.identity, n_workers=-1, callback_timeout=CONNECT_SECONDS
            )
        except (OSError, TimeoutError):
            raise lost_scheduler(self.settings) from None
        return {f"Worker '{each['name']}'": place for place, each in found["workers"].items()}

    def ask_all(self, step: Callable[[Any], Any], part: Any) -> dict[str, Any]:
        """Return the result of a step on every worker, None where it fails.

        Workers answer beside what they work on, which may take long.
        """
        names = self.list_workers()
        data = [seal(self.key, pack_value(each)) for each in (step, part)]
        client = self.client
        assert client is not None

        async def ask() -> list[Any]:
            asked = (
                client.run(answer_sealed, *data, workers=[place], on_error="return")
                for place in names.values()
            )
            limited = (asyncio.wait_for(each, CHECK_SECONDS) for each in asked)
            return await asyncio.gather(*limited, return_exceptions=True)

        replies = dict(zip(names, client.sync(ask), strict=True))
        living = self.list_workers()
        found = {
            name: self.read(reply[names[name]] if isinstance(reply, dict) else reply, name)
            for name, reply in replies.items()
            if living.get(name) == names[name]
        }
        if not found:
            raise BadInput(
                f"The cluster at {self.settings.address} has no workers.",
                remedy="Start workers with its certificates.",
            )
        return found

    def read(self, reply: Any, worker: str) -> Any:
        """Return the value of a reply, None if it is an error of the step."""
        if isinstance(reply, OSError | TimeoutError):
            raise MachineTrouble(f"{worker} does not answer.", remedy=AGAIN)
        if isinstance(reply, Exception):
            raise translate_error(reply, worker)
        return unpack_value(unseal(self.key, reply)).value

    def submit(self, step: bytes, part: bytes) -> Handle:
        assert self.client is not None
        return self.client.submit(
            run_sealed,
            self.check,
            seal(self.key, step),
            seal(self.key, part),
            key=f"part-{secrets.token_hex(8)}",  # no name that says anything
            pure=False,
        )

    def wait(self, handles: Sequence[Handle]) -> list[tuple[Handle, bytes | None]]:
        from distributed import wait

        assert self.client is not None
        while True:
            finished: Sequence[Handle] = ()
            try:
                with suppress(TimeoutError, CancelledError), self.client.as_current():
                    finished = wait(list(handles), POLL_SECONDS, "FIRST_COMPLETED").done
            except OSError:
                raise lost_scheduler(self.settings) from None
            with translate_bad_input():  # a worker that came later may differ, or lack the key
                found = [(each, self.fetch(each)) for each in finished if not is_given_up(each)]
            ready = [(each, data) for each, data in found if data is not None]
            if ready:
                self.seen_at = time.monotonic()
                return ready  # type: ignore[return-value]
            self.check_alive()
            # All messages end with the scheduler. Some end with a worker that held their reply.
            lost: list[tuple[Handle, bytes | None]] = [
                (each, None) for each in handles if is_given_up(each)
            ]
            if lost:
                return lost

    def fetch(self, handle: Handle) -> bytes | None:
        """Return the reply to a message; None if its worker died before it was fetched."""
        if handle.status == "error":
            raise translate_error(handle.exception(timeout=CONNECT_SECONDS), "A worker")
        try:
            return unseal(self.key, handle.result(timeout=CONNECT_SECONDS))
        except (TimeoutError, CancelledError):  # dask runs the message again, or gives it up
            return None
        except OSError:
            raise lost_scheduler(self.settings) from None

    def check_alive(self) -> None:
        """Raise MachineTrouble if the scheduler is gone, or all workers for some time."""
        assert self.client is not None
        if self.client.status != "running":
            raise lost_scheduler(self.settings)
        count = len(self.list_workers())
        self.count = max(1, count)
        if count:
            self.seen_at = time.monotonic()
        elif time.monotonic() - self.seen_at > MAX_SECONDS_WITHOUT_WORKERS:
            raise MachineTrouble(
                f"All workers of the cluster at {self.settings.address} are lost.", remedy=AGAIN
            )

    def cancel(self, handles: Sequence[Handle]) -> None:
        if self.client is not None and self.client.status == "running":
            self.client.cancel(list(handles), force=True)


def is_given_up(handle: Handle) -> bool:
    """Return whether dask does not run a message any more."""
    return bool(handle.status in ("cancelled", "lost"))


def run_sealed(check: bytes, step: bytes, part: bytes) -> bytes:
    """Run a message on a worker, if the worker computes what the client computes."""
    from distributed import get_worker

    key, worker = read_cluster_key(), get_worker()
    expected: Description = unpack_value(unseal(key, check))
    check_worker(f"Worker '{worker.name}'", describe_process(), expected)
    task = worker.get_current_task()
    is_wanted = IS_WANTED.set(lambda: is_executing(worker, task))
    try:
        return answer(key, step, part)
    finally:
        IS_WANTED.reset(is_wanted)


async def answer_sealed(step: bytes, part: bytes) -> bytes:
    """Run a message in another thread of a worker than that of its tasks."""
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(None, answer, read_cluster_key(), step, part)


def answer(key: bytes, step: bytes, part: bytes) -> bytes:
    """Run a message, and return its reply."""
    return seal(key, run_message(unseal(key, step), unseal(key, part)))


def is_executing(worker: Worker, task: Key) -> bool:
    """Return whether a task that a worker runs was not cancelled."""
    known = worker.state.tasks.get(task)
    return known is not None and known.state == "executing"


def read_token(path: str) -> str | None:
    """Return the content of a file, or None if this worker does not see it."""
    try:
        return Path(path).read_text()
    except OSError:
        return None


def translate_error(error: BaseException | None, worker: str) -> PpdmError:
    """Return an error of dask in one sentence; those of this program name the worker already."""
    from distributed.scheduler import KilledWorker

    if isinstance(error, BadInput):
        return error
    if isinstance(error, KilledWorker):
        return MachineTrouble(
            "Several workers died while they worked on the same part.",
            remedy="Give workers more memory, then run the same command again.",
        )
    return BadInput(
        f"{worker} cannot run this version of ppdm ({type(error).__name__}).",
        remedy=REMEDIES[CODE],
    )
