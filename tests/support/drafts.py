"""Tables for `ppdm init`, and the draft as `ppdm release` reads it."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flows.config.release_file import ReleaseFile
from ppdm.cli.init import Decided, draft_file
from ppdm.cli.release_files import read_release_file
from ppdm.cli.result import CommandResult
from ppdm_core.model.errors import BadInput
from tests.support.small_release import write_csv

ROWS = 120
Cell = Callable[[int], str]
RNG = random.Random(7391)
NOISE = [f"{RNG.gauss(0, 1):.6f}" for _ in range(2 * ROWS)]


def write_table(
    folder: Path, columns: dict[str, Cell], rows: int = ROWS, name: str = "t.csv"
) -> Path:
    """Write a table with a column of measurements and the given columns."""
    made: dict[str, Cell] = {"plain": lambda i: NOISE[i % ROWS], **columns}
    write_csv(folder / name, [{key: cell(i) for key, cell in made.items()} for i in range(rows)])
    return folder / name


def draft_table(
    source: Path, table: str | None = None, **decided: Any
) -> tuple[ReleaseFile, CommandResult, str]:
    """Return the draft as `ppdm release` reads it, the result of the command, and the text."""
    out = source.parent / "draft.toml"
    out.unlink(missing_ok=True)
    result = draft_file(source, out, table, Decided(**decided))
    file, _ = read_release_file(out)
    return file, result, out.read_text()


def read_roles(result: CommandResult) -> dict[str, tuple[str, str]]:
    return {each["name"]: (each["role"], each["why"]) for each in result.payload["columns"]}


def read_error(
    source: Path, table: str | None = None, out: str = "draft.toml", **decided: Any
) -> BadInput:
    """Return the error of a table that cannot be drafted; nothing may be written."""
    before = sorted(source.parent.iterdir())
    with pytest.raises(BadInput) as caught:
        draft_file(source, source.parent / out, table, Decided(**decided))
    assert sorted(source.parent.iterdir()) == before
    assert caught.value.remedy and "canary" not in str(caught.value)
    return caught.value
