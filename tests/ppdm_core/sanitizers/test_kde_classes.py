from __future__ import annotations

import numpy as np
import pytest

from ppdm_core.model.errors import BadInput
from ppdm_core.model.rows import ArrayRows
from ppdm_core.sanitizers.kde_resample import KdeResample, kernel_correction, normal_reference
from tests.support.class_tables import contents, labels, relabelled
from tests.support.tables import (
    fit_sanitizer,
    make_schema,
    make_table,
    read_cells,
    run_sanitizer,
    scale_rows,
)


def test_sanitize_class_of_one_raises_or_merges():
    rows = relabelled([0] * 30 + [1] * 29 + [2])
    with pytest.raises(BadInput, match="1 of the classes had one record"):
        run_sanitizer(KdeResample(), rows)
    sanitizer = KdeResample(lonely="merge")
    released = run_sanitizer(sanitizer, rows).rows
    fitted = fit_sanitizer(sanitizer, rows)
    X = read_cells(scale_rows(rows, fitted))
    own = read_cells(released)[labels(released) == 2]
    assert len(own) == 1
    assert np.all(own != X[59])
    whole = normal_reference(np.array([60.0]), 5) * X.std(axis=0, ddof=1) * kernel_correction(5)
    h = sanitizer.compute_bandwidths(rows.schema, fitted)[3]
    np.testing.assert_allclose(h, whole, rtol=1e-5)
    assert np.all(np.abs(own - X[59]) <= h)


def test_sanitize_class_of_equal_records_counts_as_lonely():
    rows = relabelled([0] * 30 + [1] * 3)
    X = rows.whole.X.copy()
    X[30:] = X[30]
    with pytest.raises(BadInput, match="or equal ones"):
        run_sanitizer(KdeResample(), relabelled([0] * 30 + [1] * 3, X))


def test_sanitize_class_unknown_at_fit_counts_as_lonely():
    fitted = fit_sanitizer(KdeResample(), relabelled([0] * 30 + [1] * 30))
    later = relabelled([0] * 30 + [1] * 28 + [2] * 2)
    with pytest.raises(BadInput, match='lonely = "merge"'):
        run_sanitizer(KdeResample(), later, fitted=fitted)
    assert run_sanitizer(KdeResample(lonely="merge"), later, fitted=fitted).rows.n == 60


def test_sanitize_equal_records_need_floor():
    rows = ArrayRows(make_schema(), np.tile(make_table(1).whole.X, (10, 1)))
    with pytest.raises(BadInput, match="All records are equal"):
        run_sanitizer(KdeResample(), rows)
    floor = KdeResample(bandwidth="floor", floor=0.05, lonely="merge")
    assert len(contents(run_sanitizer(floor, rows).rows)) == 10


def test_counts_columns_constant_within_class():
    X = make_table(60).whole.X.copy()
    X[:30, 2] = X[0, 2]
    rows = relabelled([0] * 30 + [1] * 30, X)
    released = run_sanitizer(KdeResample(), rows)
    assert released.counts == {"columns constant within a class": 1}
    own = read_cells(released.rows)[labels(released.rows) == 0]
    assert np.ptp(own, axis=0)[2] == 0
    floor = run_sanitizer(KdeResample(bandwidth="floor", floor=0.05), rows)
    assert floor.counts == {"columns constant within a class": 0}
    assert np.ptp(read_cells(floor.rows)[labels(floor.rows) == 0], axis=0)[2] > 0
