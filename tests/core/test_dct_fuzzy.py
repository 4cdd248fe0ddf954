from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.fft import dct, idct

from ppdm_core.errors import BadInput
from ppdm_core.metrics import METRICS
from ppdm_core.rows import ArrayRows
from ppdm_core.sanitizers._fuzzy_selection import (
    Choice,
    EnergyBounds,
    Programme,
    Transform,
    choose,
    distortion,
    energy_bounds,
)
from ppdm_core.sanitizers.dct_fuzzy import RESOLUTION, DctFuzzy
from ppdm_core.types import Numeric, Schema
from tests.contract.tables import KEY, fit, release, scaled, table, values, with_values
from tests.core.test_real_tables import audited
from tests.core.test_real_tables import load as load_few


def load(folder: Path, name: str) -> ArrayRows:
    """All rows of a table, in its own units."""
    with (folder / f"{name}.csv").open() as file:
        header, *lines = csv.reader(file)
    X = np.array([line[:-1] for line in lines], dtype=np.float64)
    words = sorted({line[-1] for line in lines})
    label = np.array([words.index(line[-1]) for line in lines], dtype=np.int32)
    columns = tuple(Numeric(name, 0.0, 100.0) for name in header[:-1])
    return ArrayRows(Schema(columns), X, label)


def by_brute_force(low: np.ndarray, spread: np.ndarray, b: float, p: float) -> tuple:
    """(Omega, K, mu_C) of the best of all subsets but the whole, from the definitions."""
    m = len(low)
    X = (np.arange(2**m - 1)[:, None] >> np.arange(m)) & 1  # (2^m - 1, m)
    A, D, K = X @ low, X @ spread, X.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        mu_C = np.where(b >= A + D, 1.0, np.where(b + p < A, 0.0, (b + p - A) / (p + D)))
    everything = np.vstack([X, np.ones((1, m), dtype=int)])
    most = max(everything[everything @ low <= b + p].sum(axis=1))
    fewest = max(everything[everything @ (low + spread) <= b].sum(axis=1))
    if most == fewest:
        mu_G = (most <= K).astype(float)
    else:
        mu_G = np.clip((K - fewest) / (most - fewest), 0.0, 1.0)
    return max(zip(np.minimum(mu_G, mu_C).tolist(), K.tolist(), mu_C.tolist(), strict=True))


def figures(found: Choice) -> tuple:
    return found.level, len(found.pruned), found.loss_level


def shares_of(rng: np.random.Generator, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Bounds as records make them: even, uneven, few or many."""
    weights = 10.0 ** rng.uniform(-3, 1, size=m)
    W = rng.dirichlet(weights, size=int(rng.integers(1, 12)))
    W = np.rint(W * 2**30) / 2**30
    return W.min(axis=0), W.max(axis=0) - W.min(axis=0)


@pytest.mark.parametrize("m", range(1, 13))
def test_no_choice_is_better(m: int):
    rng = np.random.default_rng(m)
    for _ in range(40):
        low, spread = shares_of(rng, m)
        b, p = rng.choice([0.0, 0.01, 0.1, 0.3]), rng.choice([0.0, 0.05, 0.2, 0.6])
        found = figures(choose(Programme(low, spread, b, p)))
        assert found == pytest.approx(by_brute_force(low, spread, b, p), abs=1e-12)


@pytest.mark.parametrize("m", [2, 3, 5, 8])
def test_no_choice_is_better_among_ties(m: int):
    # Coarse numbers: sums that meet b and b + p exactly, equal coefficients, no spread, p = 0.
    rng = np.random.default_rng(m)
    for _ in range(100):
        low, spread = rng.integers(0, 4, size=m) / 16, rng.integers(0, 3, size=m) / 16
        b, p = rng.integers(0, 6) / 16, rng.integers(0, 4) / 16
        found = figures(choose(Programme(low, spread, b, p)))
        assert found == pytest.approx(by_brute_force(low, spread, b, p), abs=1e-12)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**6), st.integers(20, 120))
def test_large_programmes_reach_what_is_feasible(seed: int, m: int):
    """Omega is reached if the cheapest K at that price fit, and nothing above it is."""
    rng = np.random.default_rng(seed)
    low, spread = shares_of(rng, m)
    b, p = rng.uniform(0, 0.5), rng.uniform(0.01, 0.5)
    programme = Programme(low, spread, b, p)
    fewest, most = programme.fewest, programme.most
    low_end, high_end = 0.0, 1.0
    for _ in range(50):
        omega = (low_end + high_end) / 2
        K = max(int(np.ceil(fewest + omega * (most - fewest) - 1e-12)), 0)
        cost = np.sort(low + omega * spread)[:K].sum()
        fits = m - 1 >= K and cost <= b + p - omega * p
        low_end, high_end = (omega, high_end) if fits else (low_end, omega)
    found = choose(programme)
    if most > fewest:
        assert found.level == pytest.approx(low_end, abs=1e-9)
    else:
        assert found.level in (0.0, 1.0)


def test_a_choice_by_hand():
    # Surely at most b: none (0.11 > 0.1). At most b + p at best: all but the first.
    programme = Programme(
        np.array([0.6, 0.0, 0.05, 0.0]), np.array([0.3, 0.2, 0.1, 0.11]), 0.1, 0.2
    )
    found = choose(programme)
    assert (programme.fewest, programme.most) == (0, 3)
    # One: min(1/3, 0.3/0.31). Two: min(2/3, 0.25/0.41) with 2, 3, or 0.3/0.51 with 1, 3. Three:
    # 0.25/0.61.
    assert found.pruned.tolist() == [2, 3]
    assert found.level == pytest.approx(0.25 / 0.41)


@pytest.mark.parametrize(("b", "p", "kept"), [(0.0, 0.2, 11), (0.1, 0.0, 11), (0.1, 0.2, 9)])
def test_kept_coefficients_of_pendigits_as_in_the_paper(shared_data: Path, b, p, kept):
    # The 7,494 training records in their own units, 0 to 100 in each column.
    rows = load(shared_data, "pendigits_train")
    for scale in ("none", "minmax"):
        assert len(fit(DctFuzzy(b=b, p=p, scale=scale), rows)["kept"]) == kept


@pytest.mark.parametrize("b", [0.1, 0.15])
def test_kept_coefficients_of_iris_as_in_the_paper(shared_data: Path, b: float):
    # In centimetres. The paper names no single b: "from 0.1 to 0.2"; at 0.2 one would do.
    rows = load(shared_data, "iris")
    assert len(fit(DctFuzzy(b=b, p=0.2, scale="none"), rows)["kept"]) == 2


@pytest.mark.parametrize("centre", [False, True])
def test_bounds_of_sites_merge_to_those_of_the_whole(centre: bool):
    sanitizer = DctFuzzy(centre=centre)
    X = np.vstack([table(300, 8).whole.X, np.zeros((3, 8))])
    schema = table(1, 8).schema
    transform = sanitizer.transform(schema)
    whole = energy_bounds(ArrayRows(schema, X), transform)
    order = np.random.default_rng(2).permutation(len(X))
    for cuts in ([1], [100, 200], [7, 8, 9, 290]):
        parts = [ArrayRows(schema, X[part]) for part in np.split(order, cuts)]
        first, *others = (energy_bounds(part, transform) for part in parts)
        for other in others:
            first = first.merge(other)
        assert np.array_equal(first.low, whole.low)
        assert np.array_equal(first.high, whole.high)
        assert (first.count, first.skipped) == (whole.count, whole.skipped)
        assert np.array_equal(sanitizer.choice(first).pruned, sanitizer.choice(whole).pruned)
    assert whole.skipped == (0 if centre else 3)


def test_bounds_hold_for_every_record():
    rows = table(200, 6)
    bounds = energy_bounds(rows, DctFuzzy().transform(rows.schema))
    energy = dct(rows.whole.X, norm="ortho", axis=1) ** 2
    W = energy / energy.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(bounds.low, W.min(axis=0), atol=1e-9)
    np.testing.assert_allclose(bounds.high, W.max(axis=0), atol=1e-9)


def secret_columns(sanitizer: DctFuzzy, rows: ArrayRows, key: bytes = KEY) -> list[int]:
    """Which coefficient each released column is, from all records."""
    fitted = fit(sanitizer, rows)
    X = scaled(rows, fitted)
    transform = sanitizer.transform(X.schema)
    C = transform.coefficients(values(X))
    Y = values(release(sanitizer, rows, key, fitted).rows)
    gaps = np.abs(Y[:, :, None] - C[:, None, :]).max(axis=0)  # (s, m)
    assert (gaps.min(axis=1) <= 1e-9).all(), "a column is no coefficient"
    return gaps.argmin(axis=1).tolist()


def test_released_are_the_kept_coefficients_in_secret_order():
    rows, sanitizer = table(200, 8), DctFuzzy(b=0.05, p=0.1)
    kept = fit(sanitizer, rows)["kept"]
    orders = [secret_columns(sanitizer, rows, bytes([i]) * 32) for i in range(6)]
    assert 2 <= len(kept) < 8
    assert all(sorted(order) == kept for order in orders)
    assert len({tuple(order) for order in orders}) > 1


def test_random_selection_keeps_as_many_drawn_with_the_key():
    rows = table(200, 8)
    count = len(fit(DctFuzzy(b=0.05, p=0.1), rows)["kept"])
    sanitizer = DctFuzzy(b=0.05, p=0.1, selection="random")
    choices = [secret_columns(sanitizer, rows, bytes([i]) * 32) for i in range(30)]
    assert {len(set(choice)) for choice in choices} == {count}
    assert {i for choice in choices for i in choice} == set(range(8))


def test_nothing_public_depends_on_the_key():
    rows = table(100, 8)
    for selection in ("fuzzy", "random"):
        sanitizer = DctFuzzy(selection=selection, centre=True)
        one, two = (release(sanitizer, rows, bytes([i]) * 32) for i in (1, 2))
        assert one.public.columns == two.public.columns
        assert one.public.facts == two.public.facts
        assert one.public.loadings is None
        assert one.rows.schema == two.rows.schema
        assert len({(c.low, c.high) for c in one.rows.schema.numeric}) == 1


def test_one_known_record_gives_the_order_and_then_everybody_away():
    # What the docstring warns of, from public facts, the release and one record alone.
    rows = table(100, 8)
    order = tuple(reversed(rows.schema.names))
    sanitizer = DctFuzzy(b=0.05, p=0.1, centre=True, order=order)
    fitted = fit(sanitizer, rows)
    X = values(scaled(rows, fitted))
    released = release(sanitizer, rows, fitted=fitted)
    public, Y = released.public, values(released.rows)
    at = np.array([int(i) - 1 for i in str(public.facts["transform_order"]).split()])
    C = dct((X[0] - public.centre)[at], norm="ortho")
    columns = np.abs(Y[0][:, None] - C).argmin(axis=1)
    full = np.zeros((100, 8))
    full[:, columns] = Y
    X_hat = np.empty((100, 8))
    X_hat[:, at] = idct(full, norm="ortho", axis=1) + public.centre[at]
    pruned = np.setdiff1d(np.arange(8), fitted["kept"])
    lost = dct((X - public.centre)[:, at], norm="ortho", axis=1)[:, pruned]
    np.testing.assert_allclose(
        np.linalg.norm(X_hat - X, axis=1), np.linalg.norm(lost, axis=1), atol=1e-8
    )


@settings(max_examples=30, deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(2, 9),
    st.sampled_from(["minmax", "none", "zscore"]),
    st.booleans(),
)
def test_distances_never_grow(seed: int, d: int, scale: str, centre: bool):
    rows = table(30, d, seed=seed)
    sanitizer = DctFuzzy(scale=scale, centre=centre)
    fitted = fit(sanitizer, rows)
    X = values(scaled(rows, fitted))
    released = release(sanitizer, rows, fitted=fitted)
    Y = values(released.rows)
    before, after = (np.linalg.norm(A[:, None] - A[None], axis=2) for A in (X, Y))
    highest = released.rows.schema.highs
    assert (after <= before + 1e-9 * highest[0]).all()
    if released.public.preserves_distances:
        np.testing.assert_allclose(after, before, atol=1e-9 * highest[0])
    assert (np.abs(Y) <= highest).all()


def losses(rows: ArrayRows, pruned: np.ndarray) -> np.ndarray:
    """d'^2 - d^2 of every pair."""
    C = dct(rows.whole.X, norm="ortho", axis=1)[:, pruned]
    i, j = np.triu_indices(rows.n, k=1)
    return -np.sum((C[i] - C[j]) ** 2, axis=1)


def test_moments_of_the_distortion():
    # Far from normal. Over all pairs the mean is exact; the variance is one of a sample.
    X = np.random.default_rng(3).exponential(size=(1500, 5)) @ np.diag([3.0, 1, 1, 2, 1])
    rows, pruned = with_values(X), np.array([1, 3, 4])
    transform = Transform(np.arange(5), np.full(5, 0.5))
    mean, variance = distortion(rows, transform, pruned, is_random=False)
    found = losses(rows, pruned)
    assert mean == pytest.approx(found.mean(), rel=1e-9)
    assert variance == pytest.approx(found.var(), rel=0.01)


def test_moments_of_the_distortion_over_random_choices():
    X = np.random.default_rng(4).exponential(size=(600, 4))
    rows = with_values(X)
    transform = Transform(np.arange(4), np.zeros(4))
    mean, variance = distortion(rows, transform, np.array([0, 2]), is_random=True)
    pairs = [[i, j] for i in range(4) for j in range(i)]
    found = np.concatenate([losses(rows, np.array(pair)) for pair in pairs])
    assert mean == pytest.approx(found.mean(), rel=1e-9)
    assert variance == pytest.approx(found.var(), rel=0.01)


def test_published_moments_have_two_digits():
    rows = table(200, 8)
    facts = release(DctFuzzy(b=0.1, p=0.2, scale="none"), rows).public.facts
    pruned = np.setdiff1d(np.arange(8), fit(DctFuzzy(scale="none"), rows)["kept"])
    mean = facts["distance_distortion_mean"]
    assert mean == pytest.approx(losses(rows, pruned).mean(), rel=0.1)
    assert float(f"{mean:.2g}") == mean


def test_the_order_of_columns_is_that_of_the_sequence():
    rows = table(60, 6)
    order = [3, 0, 5, 1, 4, 2]
    names = tuple(rows.schema.names[i] for i in order)
    moved = ArrayRows(Schema(tuple(rows.schema.numeric[i] for i in order)), rows.whole.X[:, order])
    listed = DctFuzzy(order=names, centre=True)
    given_order = DctFuzzy(centre=True)
    assert fit(listed, rows)["kept"] == fit(given_order, moved)["kept"]
    bounds = [
        energy_bounds(scaled(t, fit(s, t)), s.transform(scaled(t, fit(s, t)).schema))
        for s, t in ((listed, rows), (given_order, moved), (given_order, rows))
    ]
    assert np.array_equal(bounds[0].high, bounds[1].high)
    assert not np.array_equal(bounds[0].high, bounds[2].high)


def test_whole_numbers_do_not_become_whole_numbers():
    # The first of 16 coefficients is a quarter of the sum, here often a whole number.
    X = np.random.default_rng(5).integers(0, 100, size=(500, 16)).astype(np.float64)
    schema = Schema(tuple(Numeric(f"x{i}", 0.0, 100.0) for i in range(16)))
    released = release(DctFuzzy(scale="none"), ArrayRows(schema, X))
    Y = values(released.rows)
    assert not np.isin(Y, X).any()
    assert np.isclose(Y, np.rint(Y), atol=1e-6).any()
    assert np.array_equal(Y / released.public.grid, np.rint(Y / released.public.grid))


@pytest.mark.parametrize("unit", [2.0**-60, 1.0, 2.0**60])
def test_rounding_follows_the_units(unit: float):
    rows = table(50, 5)
    columns = tuple(Numeric(c.name, c.low * unit, c.high * unit) for c in rows.schema.numeric)
    plain = values(release(DctFuzzy(scale="none"), rows).rows)
    sanitizer = DctFuzzy(scale="none")
    other = release(sanitizer, ArrayRows(Schema(columns), rows.whole.X * unit))
    Y = values(other.rows) / unit
    assert np.allclose(np.sort(Y[0]), np.sort(plain[0]), rtol=1e-9)  # another order of columns
    steps = values(other.rows) / other.public.grid
    assert (steps % 2 == 1).all()
    assert np.abs(other.rows.schema.highs / other.public.grid / 2).max() > 1 / RESOLUTION / 2


def test_records_without_energy_are_counted_and_released():
    rows = with_values(np.vstack([table(40, 5).whole.X, np.zeros((2, 5))]))
    sanitizer = DctFuzzy(scale="none")
    assert fit(sanitizer, rows)["kept"] == fit(sanitizer, table(40, 5))["kept"]
    released = release(sanitizer, rows)
    assert list(released.counts.values()) == [2]
    Y = values(released.rows)
    assert np.abs(Y[-2:]).max() < 1e-9 * np.abs(Y).max()


def complaint(sanitizer: DctFuzzy, rows: ArrayRows) -> str:
    with pytest.raises(BadInput) as error:
        sanitizer.fit(rows)
    return str(error.value)


def test_what_cannot_be_done_says_what_to_change():
    assert "two features" in complaint(DctFuzzy(), table(20, 1))
    assert "at least 2 records" in complaint(DctFuzzy(), table(1, 4))
    assert "no energy" in complaint(DctFuzzy(), with_values(np.zeros((5, 4))))
    assert "by name" in complaint(DctFuzzy(order=["x0", "x1", "no"]), table(20, 3))
    assert "all 3 features" in complaint(DctFuzzy(order=["x0", "x1"]), table(20, 3))
    bounds = EnergyBounds(np.full(4, 0.25), np.full(4, 0.25), 1, 0)
    with pytest.raises(BadInput, match="no coefficient can be pruned"):
        DctFuzzy(b=0, p=0.25).choice(bounds)


@pytest.mark.parametrize(
    "parameters",
    [
        {"b": -0.1},
        {"b": 1.5},
        {"b": True},
        {"p": "0.2"},
        {"p": float("nan")},
        {"b": 0, "p": 0},
        {"b": 0.9, "p": 0.2},
        {"selection": "best"},
        {"centre": 1},
        {"order": "x0"},
        {"order": ["x0", "x0"]},
        {"order": [1, 2]},
    ],
    ids=str,
)
def test_parameters_that_cannot_be(parameters: dict):
    with pytest.raises(BadInput, match="parameter of DctFuzzy must be"):
        DctFuzzy(**parameters)


def test_it_promises_nothing():
    rows = table(50)
    promise = DctFuzzy().guarantee(rows.schema, fit(DctFuzzy(), rows))
    assert promise.kind == "empirical"
    assert np.isinf([promise.ln_component, promise.ln_attribute, promise.ln_record]).all()


@pytest.mark.slow
def test_accuracy_and_distance_loss_on_pendigits(shared_data: Path):
    # The paper: at b = 0, p = 0.2 distances lose about 3 % and 5-NN is as accurate as before.
    rows = load(shared_data, "pendigits_train")
    sanitizer = DctFuzzy(b=0, p=0.2, scale="none")
    released = release(sanitizer, rows)
    X, Y, label = rows.whole.X, values(released.rows), rows.whole.label
    rng = np.random.default_rng(0)
    loss = METRICS["distance_loss"].measure(X, label, Y, released.public, rng)
    accuracy = METRICS["knn_accuracy"]
    before = accuracy.original(X, label, np.random.default_rng(0))
    after = accuracy.measure(X, label, Y, released.public, np.random.default_rng(0))
    assert loss == pytest.approx(0.03, abs=0.015)
    assert after == pytest.approx(before, abs=0.005)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["iris", "wine", "wdbc", "waveform"])
def test_forty_known_records_break_the_limits_of_the_examples(shared_data: Path, name: str):
    found = audited(DctFuzzy(), load_few(shared_data, name), "known_pairs", "record_linkage")
    linked, error = found["record_linkage.rate"], found["known_pairs.relative_error"]
    assert linked.low > linked.baseline + 0.05  # the whole interval: refused, not reviewed
    assert error.high < error.baseline
