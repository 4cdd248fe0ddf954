from __future__ import annotations

import csv
import gzip
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import pdist

from ppdm_core.model.errors import BadInput
from ppdm_core.model.rows import ArrayRows
from ppdm_core.model.schema import Numeric, Schema
from ppdm_core.sanitizers._nonmetric import (
    compute_classical_start,
    compute_stress_and_gradient,
    descend,
    draw_random_start,
    fit_monotone_map,
    rank_dissimilarities,
)
from ppdm_core.sanitizers._placement import Placement
from ppdm_core.sanitizers.nonmetric_mds import STEP, NonmetricMds
from tests.support.tables import (
    fit_sanitizer,
    insert_record,
    make_bounded_rows,
    make_table,
    read_cells,
    run_sanitizer,
)

both_ties = pytest.mark.parametrize("ties", ["primary", "secondary"])
TIED = np.array([1.0, 1.0, 2.0, 2.0, 2.0, 3.0])


def make_integer_points(n: int, d: int, seed: int) -> np.ndarray:
    """Return points with few different values, so that many distances are equal."""
    return np.unique(np.random.default_rng(seed).integers(0, 4, size=(n, d)), axis=0).astype(float)


def fit_isotonic(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return max over starts of min over ends of the mean between them."""
    n = len(values)

    def mean(a: int, b: int) -> float:
        return float(np.average(values[a : b + 1], weights=weights[a : b + 1]))

    return np.array(
        [max(min(mean(a, b) for b in range(i, n)) for a in range(i + 1)) for i in range(n)]
    )


def test_order_fit_secondary_ties_is_isotonic_and_equal():
    d = np.array([2.0, 4.0, 1.0, 2.0, 3.0, 2.5])
    expected = fit_isotonic(np.array([3.0, 2.0, 2.5]), np.array([2.0, 3.0, 1.0]))
    np.testing.assert_allclose(
        rank_dissimilarities(TIED, "secondary").fit(d), expected[[0, 0, 1, 1, 1, 2]]
    )


def test_order_fit_primary_ties_follow_distances():
    d = np.array([4.0, 2.0, 2.0, 1.0, 3.0, 2.5])
    ranked = fit_isotonic(np.array([2.0, 4.0, 1.0, 2.0, 3.0, 2.5]), np.ones(6))
    np.testing.assert_allclose(
        rank_dissimilarities(TIED, "primary").fit(d), ranked[[1, 0, 3, 2, 4, 5]]
    )


@both_ties
def test_stress_gradient_matches_finite_differences(ties: str):
    X = make_integer_points(20, 4, seed=2)
    order = rank_dissimilarities(pdist(X), ties)
    rng = np.random.default_rng(3)
    Y, direction = rng.standard_normal((2, len(X), 3))
    h = 1e-6
    above, below = (
        compute_stress_and_gradient(Y + sign * h * direction, order)[0] for sign in (1, -1)
    )
    slope = np.vdot(compute_stress_and_gradient(Y, order)[1], direction)
    assert (above - below) / (2 * h) == pytest.approx(slope, rel=1e-5)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    n=st.integers(5, 25),
    ties=st.sampled_from(["primary", "secondary"]),
    start=st.sampled_from(["classical", "random"]),
)
def test_descend_stress_never_rises(seed: int, n: int, ties: str, start: str):
    X = make_integer_points(n, 4, seed)
    delta = pdist(X)
    order = rank_dissimilarities(delta, ties)
    rng = np.random.default_rng(seed)
    Y = (
        compute_classical_start(X, 2)
        if start == "classical"
        else draw_random_start(delta, len(X), 2, rng)
    )
    found, stress = descend(Y, order, 1e-4, 30)
    assert np.all(np.diff(stress) < 0)
    d = pdist(found)
    left = np.sum((d - order.fit(d)) ** 2) / np.sum(d**2)
    assert stress[-1] == pytest.approx(np.sqrt(left), abs=1e-12)


def test_descend_order_of_planar_points_recovers_them():
    """Shepard and Kruskal: the order of distances gives the points up to similarity."""
    X = np.random.default_rng(4).standard_normal((60, 2))
    delta = np.exp(pdist(X))  # any increasing function of the distances
    start = draw_random_start(delta, 60, 2, np.random.default_rng(5))
    Y, stress = descend(start, rank_dissimilarities(delta, "secondary"), 1e-6, 500)
    assert stress[-1] < 0.01
    assert np.corrcoef(pdist(Y), pdist(X))[0, 1] > 0.999


def test_monotone_map_outside_pairs_is_linear():
    delta = np.linspace(1.0, 3.0, 1000)
    knots = fit_monotone_map(delta, 2 * delta - 1, 10.0)
    assert np.all(np.diff(knots, axis=0) >= 0)
    np.testing.assert_allclose(np.interp([0.0, 2.0, 10.0], *knots.T), [0.0, 3.0, 19.0], atol=1e-9)


def test_placement_exact_distances_recovers_points():
    rng = np.random.default_rng(6)
    X, others = rng.standard_normal((50, 3)), rng.standard_normal((1100, 3)) * 2
    turn = np.linalg.qr(rng.standard_normal((3, 3))).Q
    placement = Placement(X, X @ turn, np.array([[0.0, 0.0], [100.0, 100.0]]))
    np.testing.assert_allclose(placement.place(others), others @ turn, atol=1e-9)
    assert np.array_equal(placement.place(X[7:9]), (X @ turn)[7:9])


def test_placement_rounded_input_moves_little():
    rows = make_table(300)
    fitted = fit_sanitizer(NonmetricMds(dimensions=2, landmarks=60), rows)
    placement = Placement(*(np.array(fitted[k]) for k in ("landmarks", "coordinates", "knots")))
    X = np.random.default_rng(7).random((500, 5))
    moved = np.abs(placement.place(X + 1e-14) - placement.place(X))
    assert moved.max() < STEP / 100


def test_sanitize_equal_records_get_equal_points():
    rows = make_table(80)
    X = np.concatenate([rows.whole.X, rows.whole.X[:5]])
    rows = ArrayRows(rows.schema, X)
    sanitizer = NonmetricMds(dimensions=2)
    fitted = fit_sanitizer(sanitizer, rows)
    assert len(fitted["landmarks"]) == 80
    Y = read_cells(run_sanitizer(sanitizer, rows, fitted=fitted).rows)
    assert np.array_equal(Y[80:], Y[:5])
    layout = np.array(fitted["coordinates"])
    np.testing.assert_allclose(np.sort(pdist(Y[:80])), np.sort(pdist(layout)), atol=4 * STEP)
    assert np.array_equal(Y, np.rint(Y / STEP) * STEP)


def test_sanitize_new_record_moves_no_other_and_keys_rotate():
    rows = make_table(120)
    sanitizer = NonmetricMds(dimensions=2, landmarks=50)
    fitted = fit_sanitizer(sanitizer, rows)
    Y = read_cells(run_sanitizer(sanitizer, rows, fitted=fitted).rows)
    later = read_cells(run_sanitizer(sanitizer, insert_record(rows, 10), fitted=fitted).rows)
    assert np.array_equal(np.delete(later, 10, axis=0), Y)
    other = read_cells(run_sanitizer(sanitizer, rows, bytes(32), fitted).rows)
    assert np.abs(other - Y).max() > 0.01
    np.testing.assert_allclose(pdist(other), pdist(Y), atol=1e-5)


def test_released_schema_contains_every_record_within_bounds():
    rows = make_table(200)
    sanitizer = NonmetricMds(dimensions=2, landmarks=40)
    fitted = fit_sanitizer(sanitizer, rows)
    corners = np.array(np.meshgrid(*zip(rows.schema.lows, rows.schema.highs, strict=True)))
    released = run_sanitizer(
        sanitizer, ArrayRows(rows.schema, corners.reshape(5, -1).T.copy()), fitted=fitted
    )
    assert np.abs(read_cells(released.rows)).max() <= released.rows.schema.highs[0]


@pytest.mark.parametrize(
    "parameters",
    [
        {"dimensions": 0},
        {"dimensions": 1.0},
        {"dimensions": True},
        {"landmarks": 2},
        {"landmarks": 1e3},
        {"ties": "both"},
        {"start": "best"},
        {"tolerance": 0},
        {"iterations": 0},
    ],
)
def test_parameters_invalid_raise(parameters: dict[str, object]):
    (name,) = parameters
    with pytest.raises(BadInput, match=f"'{name}' parameter of NonmetricMds"):
        NonmetricMds.from_parameters(parameters)


def test_fit_too_few_columns_or_records_raises():
    with pytest.raises(BadInput, match="at least 2 features; there is 1"):
        NonmetricMds().check_features(1)
    with pytest.raises(BadInput, match=r"an int in \[1, 4\]"):
        fit_sanitizer(NonmetricMds(dimensions=5), make_table())
    with pytest.raises(BadInput, match="at least 5 different records"):
        fit_sanitizer(NonmetricMds(dimensions=3), make_table(n=4))


def make_outliers(X: np.ndarray) -> None:
    X[:, 3:] = 0.0
    X[[0, 1, 2], [3, 4, 5]] = 12.0  # three columns that hardly vary


def make_far_groups(X: np.ndarray) -> None:
    X[40:, 0] += 20.0


@pytest.mark.parametrize("far", [make_outliers, make_far_groups])
def test_fit_coincident_layout_raises(far: Callable[[np.ndarray], None]):
    X = np.random.default_rng(8).standard_normal((80, 6))
    NonmetricMds(dimensions=2, scale="none").fit(make_bounded_rows(X))
    far(X)
    with pytest.raises(BadInput, match="most records coincide"):
        NonmetricMds(dimensions=2, scale="none").fit(make_bounded_rows(X))
    stopped_before = NonmetricMds(dimensions=2, scale="none", iterations=2)
    stopped_before.fit(make_bounded_rows(X))


def load(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Read a table without records with an empty cell (16 of Breast Cancer), constant columns."""
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
        _, *lines = csv.reader(file)
    lines = [line for line in lines if "" not in line]
    X = np.array([line[:-1] for line in lines], dtype=np.float64)
    return X[:, np.ptp(X, axis=0) > 0], np.array([line[-1] for line in lines])


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "wine.csv",
        "breast_cancer_wisconsin.csv",
        "optdigits_train.csv",
        "segmentation_test.csv",
        "mfeat_fac.csv.gz",
    ],
)
def test_knn_on_released_rows_keeps_accuracy(shared_data: Path, name: str):
    """The paper's five sets, z-scored, one dimension less than columns, all records laid out."""
    from sklearn.model_selection import StratifiedShuffleSplit
    from sklearn.neighbors import KNeighborsClassifier

    X, label = load(shared_data / name)
    n, d = X.shape
    sanitizer = NonmetricMds(dimensions=d - 1, landmarks=4000, scale="zscore")
    Y = read_cells(run_sanitizer(sanitizer, make_bounded_rows(X)).rows)
    Z = (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)
    gaps = []
    for train, test in StratifiedShuffleSplit(20, test_size=0.1, random_state=1).split(X, label):
        before, after = (
            KNeighborsClassifier(4).fit(A[train], label[train]).score(A[test], label[test])
            for A in (Z, Y)
        )
        gaps.append(before - after)
    assert abs(np.mean(gaps)) <= max(0.005, 1 / n)


@pytest.mark.slow
def test_fit_thousand_digits_reaches_known_stress(shared_data: Path):
    X, _ = load(shared_data / "optdigits_train.csv")
    fitted = NonmetricMds(dimensions=10, scale="none").fit(make_bounded_rows(X[:1000]))
    Y = np.array(fitted["coordinates"])
    order = rank_dissimilarities(pdist(np.array(fitted["landmarks"])), "secondary")
    assert np.sqrt(compute_stress_and_gradient(Y, order)[0]) <= 0.038


@pytest.mark.slow
def test_fit_other_start_reaches_same_stress():
    """Random starts reach the stress of the classical start, in many more steps."""
    from sklearn.datasets import load_digits

    X = load_digits().data[:1000]
    delta = pdist(X)
    order = rank_dissimilarities(delta, "secondary")
    _, classical = descend(compute_classical_start(X, 10), order, 1e-4, 300)
    rng = np.random.default_rng(10)
    for _ in range(2):
        _, stress = descend(draw_random_start(delta, len(X), 10, rng), order, 1e-6, 1000)
        assert stress[-1] == pytest.approx(classical[-1], rel=1e-3)
        assert len(stress) > 2 * len(classical)


@pytest.mark.slow
def test_sanitize_memory_is_linear_in_records():
    rng = np.random.default_rng(9)
    peaks = []
    sanitizer = NonmetricMds(dimensions=3, landmarks=300, scale="none")
    schema = Schema(tuple(Numeric(f"x{j}", 0.0, 1.0) for j in range(6)))
    for n in (50_000, 100_000):
        rows = ArrayRows(schema, rng.random((n, 6)))
        tracemalloc.start()
        run_sanitizer(sanitizer, rows)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 2.2 * peaks[0]
    assert peaks[1] < 10 * 100_000 * 6 * 8
