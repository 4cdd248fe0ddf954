from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import pytest

from ppdm_core.model.errors import Defect, MachineTrouble
from ppdm_core.model.rows import Block
from ppdm_core.numerics.noise import Noise
from tests.contract import cases
from tests.contract.broken_engines import InThisProcess
from tests.support.tables import adapt_columns, fit_sanitizer, make_table, read_bytes, scale_rows
from warehouse.engines._messages import (
    MissingSubkey,
    StepMessage,
    pack_identity,
    pack_value,
    run_message,
    unpack_value,
)
from warehouse.engines.engine_rows import BlockRange, EngineRows, MapStep, identify
from warehouse.parquet_parts import write_parts

KEY = bytes(range(32))


class Ranks:
    """A step that asks for the subkeys of some purposes; it is tried on none of them."""

    def __init__(self, noise: Noise, *purposes: str) -> None:
        self.noise, self.purposes = noise, purposes

    def __call__(self, part: int) -> list[bytes]:
        return [self.noise.subkey(purpose) for purpose in self.purposes[:part]]

    def try_first_row(self) -> None:
        self(1)


class Both:
    """A step with two noises."""

    def __init__(self, one: Noise, two: Noise) -> None:
        self.one, self.two = one, two

    def __call__(self, part: int) -> bytes:
        return self.one.subkey("a") + self.two.subkey("a")

    def try_first_row(self) -> None:
        self(0)


def test_step_message_holds_asked_subkeys_and_no_key():
    noise = Noise(KEY)
    unasked = noise.subkey("unasked")
    message = StepMessage(Ranks(noise, "first", "second"))
    assert noise.subkey("first") in message.data
    for secret in (KEY, unasked, noise.subkey("second")):
        assert secret not in message.data


def test_run_message_missing_subkey_granted_with_next_message():
    noise = Noise(KEY)
    message = StepMessage(Ranks(noise, "first", "second"))
    reply = unpack_value(run_message(message.data, pack_value(2)))
    assert isinstance(reply.missing, MissingSubkey)
    message.grant(reply.missing)
    reply = unpack_value(run_message(message.data, pack_value(2)))
    assert reply.value == [noise.subkey("first"), noise.subkey("second")]


def test_step_message_two_noises_each_has_own_subkeys():
    one, two = Noise(KEY), Noise(bytes(32))

    message = StepMessage(Both(one, two))
    reply = unpack_value(run_message(message.data, pack_value(0)))
    assert reply.value == one.subkey("a") + two.subkey("a")


def test_run_message_error_reply_quotes_no_value():
    def fail(part: str) -> None:
        raise KeyError(part)

    data = run_message(StepMessage(fail).data, pack_value("4711.815"))
    assert b"4711.815" not in data
    assert isinstance(unpack_value(data).error, Defect)


def test_pack_identity_follows_from_values_code_and_key():
    def make(offset: int, noise: Noise):
        return lambda block: offset + noise.ranks(block.key, "x")

    same = pack_identity(make(1, Noise(KEY)))
    assert pack_identity(make(1, Noise(KEY))) == same
    assert pack_identity(make(2, Noise(KEY))) != same
    assert pack_identity(make(1, Noise(bytes(32)))) != same
    assert KEY not in same


@pytest.mark.parametrize("case", cases.SANITIZERS.values(), ids=cases.SANITIZERS)
def test_sanitizer_steps_as_messages_same_bytes(case: cases.SanitizerCase, tmp_path: Path):
    sanitizer = case.make()
    rows = adapt_columns(make_table(300), sanitizer)
    write_parts(rows.blocks(), rows.schema, tmp_path / "rows")
    with InThisProcess() as engine:
        sent = EngineRows(rows.schema, tmp_path / "rows", engine, identify("rows"))
        fitted = fit_sanitizer(sanitizer, rows)
        assert fit_sanitizer(sanitizer, sent) == fitted
        local, spread = (
            sanitizer.sanitize(scale_rows(each, fitted), Noise(KEY), fitted)
            for each in (rows, sent)
        )
        assert read_bytes(spread.rows) == read_bytes(local.rows)
        assert spread.counts == local.counts


def test_engine_rows_map_parts_that_exist_are_used(tmp_path: Path):
    runs = []

    class Counting(InThisProcess):
        def run(self, step, parts):
            runs.append(len(parts))
            return super().run(step, parts)

    rows = make_table(100)
    write_parts(rows.blocks(), rows.schema, tmp_path / "rows")

    def shift(block: Block) -> Block:
        return replace(block, X=block.X + 1, counts={"shifted": block.n})

    with Counting() as engine:
        made = [
            EngineRows(rows.schema, tmp_path / "rows", engine, identify("rows")).map(
                shift, rows.schema
            )
            for _ in "ab"
        ]
        other = EngineRows(rows.schema, tmp_path / "rows", engine, identify("others"))
        other.map(shift, rows.schema)
    assert runs == [1, 0, 1]
    assert made[0].counts == made[1].counts == {"shifted": 100}
    assert read_bytes(made[0]) == read_bytes(made[1])


def test_engine_rows_pickled_copy_has_no_engine(tmp_path: Path):
    rows = make_table(10)
    write_parts(rows.blocks(), rows.schema, tmp_path / "rows")
    with InThisProcess() as engine:
        sent = EngineRows(rows.schema, tmp_path / "rows", engine, identify("rows"))
        copy = pickle.loads(pickle.dumps(sent))
    assert not isinstance(copy, EngineRows)
    assert read_bytes(copy) == read_bytes(sent)


def test_map_step_interrupted_write_leaves_no_part(tmp_path: Path):
    rows = make_table(10)
    source = write_parts(rows.blocks(), rows.schema, tmp_path / "rows")

    def fail(block: Block) -> Block:
        raise OSError(28, "no space left on device")

    (tmp_path / "target").mkdir()
    step = MapStep(
        tuple(source.list_files()), rows.schema, fail, rows.schema, str(tmp_path / "target")
    )
    with InThisProcess() as engine, pytest.raises(MachineTrouble, match="disk is full"):
        list(engine.run(step, [BlockRange(0, 1)]))
    assert list((tmp_path / "target").iterdir()) == []
