"""Releases of public tables by other tools: `ppdm audit` with its own policy refuses bad ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ppdm.cli.audit import audit_release
from ppdm_core.model.errors import Refused
from studies.audit_calibration import make_frames
from tests.support.audit_tables import TABLES
from tests.support.release_kinds.kinds import Kind, make_rng
from tests.support.slow_cases import mark_exhaustive, take_in_turn
from tests.support.unsafe_releases import EARLIER, SAFE, UNSAFE

SHARED = ("wdbc", "pima", "svmguide1", "ionosphere", "waveform")
MAX_RECORDS = 300
CLASSIC = [name for name, kind in UNSAFE.items() if kind.family == "classic"]
OTHERS = [name for name in EARLIER if name not in CLASSIC]
# Slow: one of six, on every table; `python -m studies.audit_calibration` audits all kinds.
SLOW_PART = 6
PART = 6  # of the other families, one of so many
KNOWN_PAIRS = "60"


@pytest.fixture(autouse=True)
def _data_folder(shared_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PPDM_DATA", str(shared_data))


def find_exit_code(folder: Path, table: str, kind: Kind, known: str | None = None) -> int:
    """Audit a release in files, without a label."""
    n = min(MAX_RECORDS, TABLES[table].max_records)
    sample = replace(TABLES[table].draw(n, seed=1), label=None, other_label=None)
    Y = kind.release(sample.X, make_rng("e2e", table, kind.name))
    frames = make_frames(kind, sample, Y)[:3]
    paths = [folder / f"{part}.parquet" for part in ("original", "released", "control")]
    for frame, path in zip(frames, paths, strict=True):
        frame.to_parquet(path)
    answer = audit_release(
        paths[0], paths[1], control=paths[2], known_records=known, unaligned=not kind.aligned
    )
    return int(answer.exit_code)


def spread_over_tables(names: list[str]) -> list[Any]:
    """Return each kind with one of the tables, in turn; most of them are exhaustive."""
    cases = take_in_turn(names, SHARED)
    return mark_exhaustive(cases, slow=cases[::SLOW_PART])


@pytest.mark.slow
@pytest.mark.parametrize(("name", "table"), spread_over_tables(CLASSIC))
def test_audit_classic_release_refused(table: str, name: str, tmp_path: Path) -> None:
    assert find_exit_code(tmp_path, table, UNSAFE[name]) == Refused.exit_code


@pytest.mark.slow
@pytest.mark.parametrize(("name", "table"), spread_over_tables(OTHERS[::PART]))
def test_audit_unsafe_release_refused(table: str, name: str, tmp_path: Path) -> None:
    assert find_exit_code(tmp_path, table, UNSAFE[name], KNOWN_PAIRS) == Refused.exit_code


@pytest.mark.slow
@pytest.mark.parametrize("table", mark_exhaustive(SHARED, slow=SHARED[:2]))
def test_audit_independent_release_not_refused(table: str, tmp_path: Path) -> None:
    assert find_exit_code(tmp_path, table, SAFE["independent normal"]) != Refused.exit_code
