"""Messages to workers: a step with the data that it needs, and the reply.

Steps are functions within functions, which cloudpickle can send. A message exists in memory and on
an encrypted connection, never in a file: reading a pickled file executes what is in it.

The key of a dataset is in no message. Where a step holds noise, the message holds the subkeys that
the step asks for. They are found by a trial on the first row; a worker that needs another one says
so in its reply, and gets it with the next message.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Generic, TypeVar

import cloudpickle

from ppdm_core.model.errors import PpdmError
from ppdm_core.numerics.noise import Noise, Purpose
from warehouse.redaction import clear_frames, redact

P = TypeVar("P")
S = TypeVar("S")


class MissingSubkey(Exception):
    """A step asked for a subkey that its message does not hold."""

    def __init__(self, number: int, purpose: Purpose) -> None:
        super().__init__("a subkey is missing")  # a purpose may hold a digest of the records
        self.number, self.purpose = number, purpose


class WorkerNoise(Noise):
    """Noise of a message: some subkeys, and no key."""

    def __init__(self, number: int, subkeys: dict[Purpose, bytes]) -> None:
        self.number, self.subkeys = number, subkeys

    def subkey(self, *purpose: bytes | str) -> bytes:
        if purpose not in self.subkeys:
            raise MissingSubkey(self.number, purpose)
        return self.subkeys[purpose]


@dataclass
class Grant:
    """The subkeys of one noise that messages hold."""

    noise: Noise
    subkeys: dict[Purpose, bytes] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Reply(Generic[S]):
    """The result of a step, or why there is none."""

    value: S | None = None
    error: PpdmError | None = None
    missing: MissingSubkey | None = None

    def __reduce__(self) -> tuple[object, ...]:
        missing = self.missing and (self.missing.number, self.missing.purpose)
        return _rebuild_reply, (self.value, self.error, missing)


def _rebuild_reply(value: Any, error: PpdmError | None, missing: Any) -> Reply[Any]:
    return Reply(value, error, missing and MissingSubkey(*missing))


class ReplyToError:
    """A context that turns an error of its block into a reply without any value of the data."""

    reply: Reply[Any] | None = None

    def __enter__(self) -> ReplyToError:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if not isinstance(error, Exception):
            return False
        if isinstance(error, MissingSubkey):
            self.reply = Reply(missing=error)
        else:
            self.reply = Reply(error=error if isinstance(error, PpdmError) else redact(error))
        clear_frames(error)
        return True


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    """A pickler that leaves the keys of noise out."""

    def __init__(self, file: io.BytesIO, grants: list[Grant]) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self.grants = grants

    def reducer_override(self, obj: Any) -> Any:
        if not isinstance(obj, Noise):
            return super().reducer_override(obj)
        for number, grant in enumerate(self.grants):
            if grant.noise is obj:
                return WorkerNoise, (number, grant.subkeys)
        self.grants.append(Grant(obj))
        return WorkerNoise, (len(self.grants) - 1, {})


class _IdentityPickler(_Pickler):
    """A pickler for digests: different keys of noise give different bytes."""

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, Noise):
            return bytes, (obj.subkey("identity"),)
        return super().reducer_override(obj)


def pack_identity(value: Any) -> bytes:
    """Return bytes that differ if steps differ. They are for a digest, and are sent nowhere."""
    file = io.BytesIO()
    _IdentityPickler(file, []).dump(value)
    return file.getvalue()


class StepMessage(Generic[P, S]):
    """A step as workers receive it."""

    def __init__(self, step: Callable[[P], S]) -> None:
        self.step = step
        self.grants: list[Grant] = []
        self.data = b""
        self.pack()
        if self.grants:
            self.try_step()

    def pack(self) -> None:
        """Write the step with the subkeys that are known to be needed."""
        file = io.BytesIO()
        _Pickler(file, self.grants).dump(self.step)
        self.data = file.getvalue()

    def try_step(self) -> None:
        """Find the subkeys that the step needs for the first row."""
        is_tried = False
        while not is_tried:
            step = pickle.loads(self.data)
            with ReplyToError() as caught:
                step.try_first_row()
            reply = caught.reply or Reply()
            if reply.error is not None:
                raise reply.error
            is_tried = reply.missing is None
            if reply.missing is not None:
                self.grant(reply.missing)

    def grant(self, missing: MissingSubkey) -> None:
        """Add a subkey to the following messages."""
        grant = self.grants[missing.number]
        grant.subkeys[missing.purpose] = grant.noise.subkey(*missing.purpose)
        self.pack()


def run_message(step: bytes, part: bytes) -> bytes:
    """Run a step on a part, and return the reply. Runs on workers."""
    with ReplyToError() as caught:
        value = pickle.loads(step)(pickle.loads(part))
        return pack_value(Reply(value))
    return pack_value(caught.reply)


def pack_value(value: Any) -> bytes:
    """Return a part or a reply as bytes."""
    file = io.BytesIO()
    _Pickler(file, []).dump(value)
    return file.getvalue()


def unpack_value(data: bytes) -> Any:
    """Return what ``pack_value`` packed."""
    return pickle.loads(data)
