"""What every engine must do."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ppdm_core.model.errors import BadInput, Defect, PpdmError
from ppdm_core.model.rows import BLOCK, ArrayRows, Block, Rows
from ppdm_core.model.schema import Numeric, Schema
from ppdm_core.numerics.noise import Noise
from warehouse.engines import Engine
from warehouse.engines.engine_rows import EngineRows, identify
from warehouse.parquet_parts import write_parts

CANARY = "4711.8150815"
PARTS = [5, 3, 8, 1, 9, 2]
KEY = b"0123456789abcdef0123456789abcdef"


def run(engine: Engine, step: Callable[[Any], Any]) -> list[Any]:
    """Run a step; an error that is not one of this program is a broken engine."""
    try:
        return list(engine.run(step, PARTS))
    except PpdmError:
        raise
    except Exception as error:
        raise AssertionError(type(error).__name__) from error


def find_error(engine: Engine, step: Callable[[Any], Any]) -> PpdmError | None:
    try:
        run(engine, step)
    except PpdmError as error:
        return error
    return None


def double(part: int) -> int:
    time.sleep(0.01 * part)  # later parts end before earlier ones
    return 2 * part


def check_order_kept(engine: Engine, folder: Path) -> None:
    assert run(engine, double) == [2 * part for part in PARTS]


def check_captured_values_sent(engine: Engine, folder: Path) -> None:
    offset = 7
    assert run(engine, lambda part: part + offset) == [part + offset for part in PARTS]


def check_errors_without_values(engine: Engine, folder: Path) -> None:
    def fail(part: int) -> int:
        raise ValueError(f"cannot use {CANARY}")

    error = find_error(engine, fail)
    assert isinstance(error, Defect)
    assert CANARY not in f"{error} {error.__cause__} {error.__context__}"


def check_trial_errors_without_values(engine: Engine, folder: Path) -> None:
    """A step with noise is tried on one row before it is sent; its errors are no others."""
    noise = Noise(KEY)

    class Failing:
        def __call__(self, part: int) -> bytes:
            raise ValueError(f"cannot use {CANARY} {noise!r}")

        def try_first_row(self) -> None:
            self(0)

    error = find_error(engine, Failing())
    assert isinstance(error, Defect)
    assert CANARY not in f"{error} {error.__cause__} {error.__context__}"


def check_bad_input_passed_on(engine: Engine, folder: Path) -> None:
    def refuse(part: int) -> int:
        raise BadInput("The column is empty.", column="age")

    error = find_error(engine, refuse)
    assert isinstance(error, BadInput)
    assert (error.message, error.column) == ("The column is empty.", "age")


def check_same_bytes(engine: Engine, folder: Path) -> None:
    """Sums round as in one process, and noise follows from subkeys of the same key."""
    X = np.random.default_rng(0).random((9 * BLOCK + 5, 1))
    schema = Schema((Numeric("x", 0.0, 1.0),))
    rows = ArrayRows(schema, X)
    write_parts(rows.blocks(), schema, folder / "table")
    spread = EngineRows(schema, folder / "table", engine, identify("table"))
    noise = Noise(KEY)
    try:
        assert measure(spread, noise) == measure(rows, noise)
    except PpdmError as error:
        raise AssertionError(str(error)) from error


def measure(rows: Rows, noise: Noise) -> tuple[Any, ...]:
    def select(block: Block) -> Block:
        keep = noise.ranks(block.key, "half") < 2**63
        counts = {"seen": block.n}
        return replace(block, X=block.X + keep[:, None] * block.start, counts=counts)

    moved = rows.map(select, rows.schema)
    total = moved.reduce(lambda block: block.X.sum(axis=0), np.add)
    X = np.concatenate([block.X for block in moved.blocks()])
    return total.tobytes(), X.tobytes(), dict(moved.counts), moved.n


def check_dead_worker_replaced(engine: Engine, folder: Path) -> None:
    """A worker dies in the middle of a part; another one runs it."""
    killed = folder / "killed"

    def die_once(part: int) -> int:
        if part == 8 and not killed.exists():
            killed.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return 2 * part

    assert run(engine, die_once) == [2 * part for part in PARTS]
    assert killed.exists()


def iterate_checks() -> Iterator[Callable[[Engine, Path], None]]:
    """Yield all checks except that of deaths, which needs a worker with a process of its own."""
    yield check_order_kept
    yield check_captured_values_sent
    yield check_errors_without_values
    yield check_trial_errors_without_values
    yield check_bad_input_passed_on
    yield check_same_bytes
