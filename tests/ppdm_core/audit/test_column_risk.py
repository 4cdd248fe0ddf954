"""Which columns drive the risk, on tables where the answer is known."""

from __future__ import annotations

import numpy as np
import pytest

from ppdm_core.audit.auditor import Auditor
from ppdm_core.audit.column_risk import ColumnRuns, measure_columns
from ppdm_core.audit.draws import OriginalTable, ReleaseDraw
from ppdm_core.model.errors import NotApplicable
from ppdm_core.model.release import PublicParameters, Response
from ppdm_core.model.schema import Categorical, Numeric, Schema
from tests.support.audit_cases import LAPLACE, D, draw_noisy, make_auditor, make_policy, make_truth

N = 200


def draw_with_noise(*scales: float) -> np.ndarray:
    X = make_truth(N).X
    return X + np.random.default_rng(5).laplace(0.0, 1.0, X.shape) * np.array(scales)


def test_measure_columns_one_clear_column_drives_the_risk() -> None:
    found = measure_columns(make_auditor(draw_with_noise(0.002, 0.4, 0.4, 0.4)))
    clear, *others = found.columns
    assert clear.column == "x0" and found.persons > 100
    assert found.rate > 0.4 and clear.rate < 0.15 and clear.low > 0.2
    for line in others:  # a column of noise changes nothing
        assert line.low < 0.05 and line.rate > found.rate - 0.15


def test_measure_columns_released_by_components_every_column_counts() -> None:
    """The columns cannot be taken out of the release: the attacker lacks them."""
    found = measure_columns(make_auditor(draw_noisy(1, 0.1, N), public=LAPLACE))
    assert all(line.rate < found.rate for line in found.columns)
    assert [line.column for line in found.columns] == [f"x{j}" for j in range(D)]


def test_measure_columns_independent_noise_no_column_counts() -> None:
    Y = np.random.default_rng(4).random((2, N, D))
    found = measure_columns(make_auditor(*Y))
    assert found.rate < 0.05
    assert all(line.low < 0 < line.high for line in found.columns)


def make_mixed_auditor(gamma: float) -> Auditor:
    """Return an auditor of noise, answers of 50 categories, and a label of 4 classes."""
    rng = np.random.default_rng(7)
    town = Categorical("town", tuple(map(str, range(50))))
    label = Categorical("class", ("a", "b", "c", "d"))
    schema = Schema((Numeric("x", 0.0, 1.0), Numeric("y", 0.0, 1.0)), (town,), label)
    codes = rng.integers(0, 50, (N, 1)).astype(np.int32)
    truth = OriginalTable(rng.random((N, 2)), rng.integers(0, 4, N).astype(np.int32), schema, codes)
    public = PublicParameters("m", "original", ("x", "y"), responses=(Response(town, gamma),))
    draw = ReleaseDraw(rng.random((N, 2)), public, C=codes)
    return Auditor(truth, (draw,), make_policy(), b"s")


def test_measure_columns_categories_and_label_count() -> None:
    found = measure_columns(make_mixed_auditor(gamma=1e6))
    lines = {line.column: line for line in found.columns}
    assert list(lines) == ["x", "y", "town", "class"]
    assert found.rate > 0.5 and lines["town"].rate < 0.1
    assert 0.1 < lines["class"].rate < found.rate - 0.2


def test_measure_columns_same_draws_same_result() -> None:
    auditors = [make_auditor(draw_noisy(1, n=N)) for _ in range(2)]
    assert measure_columns(auditors[0]) == measure_columns(auditors[1])


def test_column_runs_single_column_not_applicable() -> None:
    schema = Schema((Numeric("x", 0.0, 1.0),))
    X = np.random.default_rng(1).random((N, 1))
    truth = OriginalTable(X, np.zeros(N, dtype=np.int32), schema)
    public = PublicParameters("copy", "original", ("x",))
    with pytest.raises(NotApplicable, match="single column"):
        ColumnRuns(Auditor(truth, (ReleaseDraw(X, public),), make_policy(), b"s"))
