"""Bad releases of public tables by other tools: `ppdm audit` with its own policy refuses all."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ppdm.cli.audit import audit_release
from ppdm_core.model.arrays import Floats
from ppdm_core.model.errors import Refused
from tests.support.unsafe_releases import SAFE, UNALIGNED, UNSAFE, Release

TABLES = ("wdbc", "pima", "svmguide1_train", "ionosphere", "waveform")
PEOPLE = 600  # half of them in the release


def people(path: Path) -> tuple[Floats, Floats]:
    """Return records of the release and others; numeric columns only, no record twice."""
    table = pd.read_csv(path).select_dtypes("number").drop(columns=["label", "id"], errors="ignore")
    table = table.loc[:, table.nunique() > 2].dropna().drop_duplicates()
    X = table.sample(min(PEOPLE, len(table)), random_state=1).to_numpy(np.float64)
    inside, outside = np.array_split(X, 2)
    return inside, outside


def exit_code(folder: Path, shared: Path, table: str, name: str, make: Release) -> int:
    X, others = people(shared / f"{table}.csv")
    names = [f"x{j}" for j in range(X.shape[1])]
    parts = {"original": X, "released": make(X, np.random.default_rng(3)), "control": others}
    for part, values in parts.items():
        pd.DataFrame(values, columns=names).to_parquet(folder / f"{part}.parquet")
    answer = audit_release(
        folder / "original.parquet",
        folder / "released.parquet",
        control=folder / "control.parquet",
        unaligned=name in UNALIGNED,
    )
    return int(answer.exit_code)


@pytest.mark.slow
@pytest.mark.parametrize("name", UNSAFE)
@pytest.mark.parametrize("table", TABLES)
def test_audit_unsafe_release_refused(
    table: str, name: str, tmp_path: Path, shared_data: Path
) -> None:
    assert exit_code(tmp_path, shared_data, table, name, UNSAFE[name]) == Refused.exit_code


@pytest.mark.slow
@pytest.mark.parametrize("name", SAFE)
@pytest.mark.parametrize("table", TABLES)
def test_audit_independent_release_not_refused(
    table: str, name: str, tmp_path: Path, shared_data: Path
) -> None:
    assert exit_code(tmp_path, shared_data, table, name, SAFE[name]) != Refused.exit_code


def test_unsafe_releases_at_least_fifteen() -> None:
    assert len(UNSAFE) >= 15 and len(TABLES) >= 5


@pytest.mark.parametrize("name", [name for name in UNSAFE if name not in ("copy", "flipped signs")])
def test_unsafe_release_changed_values_same_shape(name: str) -> None:
    rng = np.random.default_rng(1)
    X = rng.gamma(2.0, size=(60, 4)) + rng.gamma(1.0, size=(60, 1))
    Y = UNSAFE[name](X, rng)
    assert Y.shape == X.shape and np.isfinite(Y).all() and not np.allclose(Y, X)
