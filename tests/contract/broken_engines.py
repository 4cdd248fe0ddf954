"""Engines with one bug each, which the checks must find."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from ppdm_core.numerics.noise import Noise
from warehouse.engines import EngineSettings
from warehouse.engines._messages import StepMessage, pack_value, run_message, unpack_value
from warehouse.engines.local import Local


class InThisProcess(Local):
    """A sound engine without processes, whose steps are sent as messages."""

    workers = 2

    def __init__(self) -> None:
        super().__init__(EngineSettings(part_blocks=2))

    def run(self, step: Callable[[Any], Any], parts: Sequence[Any]) -> Iterator[Any]:
        message = StepMessage(step)
        for part in parts:
            reply = unpack_value(run_message(message.data, pack_value(part)))
            if reply.error is not None:
                raise reply.error
            yield reply.value


class ReversesParts(InThisProcess):
    def run(self, step, parts):
        return reversed(list(super().run(step, parts)))


class SkipsAPart(InThisProcess):
    def run(self, step, parts):
        return super().run(step, parts[:-1])


class SendsNamesOnly(InThisProcess):
    """Sends functions by their names, as the pickles of Python do."""

    def run(self, step, parts):
        import pickle

        return super().run(pickle.loads(pickle.dumps(step)), parts)


class QuotesErrors(InThisProcess):
    def run(self, step, parts):
        return map(step, parts)


class HidesErrors(InThisProcess):
    def run(self, step, parts):
        message = StepMessage(step)
        for part in parts:
            yield unpack_value(run_message(message.data, pack_value(part))).value


class ReplacesTheKey(InThisProcess):
    """Gives workers a key of their own."""

    def run(self, step, parts):
        message = StepMessage(step)
        for grant in message.grants:
            grant.subkeys = dict.fromkeys(grant.subkeys, Noise(os.urandom(32)).subkey("other"))
        message.pack()
        return (unpack_value(run_message(message.data, pack_value(part))).value for part in parts)


class MergesInAnyOrder(InThisProcess):
    def run(self, step, parts):
        return iter(sorted(super().run(step, parts), key=str))


class GivesUpAtDeath(Local):
    def __init__(self) -> None:
        super().__init__(EngineSettings(workers=2, part_blocks=2))

    def wait(self, handles):
        found = super().wait(handles)
        if any(data is None for _, data in found):
            raise BrokenProcessPool
        return found
