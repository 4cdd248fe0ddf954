"""The tables of the calibration study: records inside and outside, and their classes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support.audit_tables import MIN_CLASS_RECORDS, TABLES, AuditTable, merge_rare_classes

GENERATED = [name for name, table in TABLES.items() if table.origin == "generated"]
SHARED = [name for name, table in TABLES.items() if table.origin == "shared"]


def check_sample(table: AuditTable, n: int) -> None:
    sample = table.draw(n, seed=1)
    X, others = sample.X, sample.others
    assert X.shape == (n, X.shape[1]) and len(others) >= n and X.shape[1] == others.shape[1] >= 3
    assert np.isfinite(X).all() and np.isfinite(others).all() and np.all(np.ptp(X, axis=0) > 0)
    assert len(np.unique(np.vstack([X, others]), axis=0)) == len(X) + len(others)
    assert np.array_equal(X, table.draw(n, seed=1).X)
    assert not np.array_equal(X, table.draw(n, seed=2).X)
    assert not any(np.all(np.diff(column) >= 0) for column in X.T), "sorted"
    if sample.label is not None:
        assert sample.other_label is not None and len(sample.label) == n
        classes, counts = np.unique(sample.label, return_counts=True)
        assert len(classes) >= 2 and counts.min() >= MIN_CLASS_RECORDS
        assert set(sample.other_label) <= set(classes.tolist())


@pytest.mark.parametrize("n", [100, 500])
@pytest.mark.parametrize("name", GENERATED)
def test_draw_generated_table_two_disjoint_samples(name: str, n: int) -> None:
    check_sample(TABLES[name], n)


@pytest.mark.slow
@pytest.mark.parametrize("name", SHARED)
def test_draw_shared_table_two_disjoint_samples(
    name: str, shared_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PPDM_DATA", str(shared_data))
    check_sample(TABLES[name], 100)
    check_sample(TABLES[name], min(2_000, TABLES[name].max_records))


def test_tables_enough() -> None:
    assert len(TABLES) >= 20 and len(GENERATED) >= 10 and len(SHARED) >= 10


def test_draw_too_many_records_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    table = AuditTable("uniform", "generated")
    monkeypatch.setitem(
        AuditTable.draw.__globals__["GENERATED"], "uniform", lambda n, rng: (np.eye(n)[:5], None)
    )
    with pytest.raises(ValueError, match="no 40 different records"):
        table.draw(20, seed=1)


def test_merge_rare_classes_small_ones_joined() -> None:
    label = np.repeat([0, 1, 2, 3], [100, 60, 30, 25])
    assert np.unique(merge_rare_classes(label, len(label))).tolist() == [0, 1, 2]
    assert merge_rare_classes(label[:120], 120) is None
