"""Metrics that see both tables: copies, hidden digits, repeated and recomputed noise."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from ppdm_core.metrics import METRICS, ReleaseComparison
from ppdm_core.metrics._gamma_tail import fit_gamma
from ppdm_core.metrics.copied_records import find_copies, find_most_frequent
from ppdm_core.metrics.hidden_digits import encode_digits
from ppdm_core.metrics.repeated_noise import list_pairs
from ppdm_core.model.release import PublicParameters

NAMES = (
    "copied_records",
    "hidden_digits",
    "repeated_noise",
    "predictable_noise",
    "recomputed_noise",
)
Release = Callable[[np.ndarray, np.random.Generator], np.ndarray]


def make_comparison(X: np.ndarray, Y: np.ndarray) -> ReleaseComparison:
    d = X.shape[1]
    names = tuple(f"x{j}" for j in range(d))
    public = PublicParameters("unknown", "original", names, np.zeros(d), np.eye(d))
    label = np.zeros(len(X), dtype=np.int32)
    return ReleaseComparison(X, label, Y, public, cells=Y)


def find_leaking(X: np.ndarray, Y: np.ndarray) -> set[str]:
    comparison = make_comparison(X, Y)
    return {
        name
        for name in NAMES
        if METRICS[name].measure(comparison).value > METRICS[name].baseline(comparison)
    }


def add_noise(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return X + rng.laplace(0.0, 2.0, X.shape)


def cancel_in_groups(X: np.ndarray, rng: np.random.Generator, groups: np.ndarray) -> np.ndarray:
    noise = rng.laplace(0.0, 2.0, (*groups.shape, X.shape[1]))
    Y = X.copy()
    Y[groups] += noise - noise.mean(axis=1, keepdims=True)
    return Y


def copy_some(X: np.ndarray, rng: np.random.Generator, error: float = 0.0) -> np.ndarray:
    Y, some = add_noise(X, rng), rng.permutation(len(X))[:5]
    Y[some] = X[some] + error * rng.standard_normal((5, X.shape[1]))
    return Y


def copy_elsewhere(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    Y, some = add_noise(X, rng), rng.permutation(len(X))[:10]
    Y[some[:5]] = X[some[5:]]
    return Y


def hide_in_mantissa(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    Z = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    bits = np.ascontiguousarray(rng.normal(3.0, 1.0, X.shape)).view(np.uint64)
    bits = (bits & ~np.uint64(2**20 - 1)) | (Z * (2**20 - 1)).astype(np.uint64)
    return bits.view(np.float64)


def hide_few_rows(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    place = rng.random(X.shape)
    place[::40] = ((X - X.min(axis=0)) / np.ptp(X, axis=0))[::40]
    return np.round(rng.normal(size=X.shape), 3) + place * 1e-5


def hide_parity(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    number = np.round(rng.normal(0.0, 1e4, X.shape)).astype(np.int64)
    bit = (X[:, 0] > np.median(X[:, 0])).astype(np.int64)
    number[:, 1] += (number[:, 1] - bit) % 2
    return number / 1e4


def hide_in_sum(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    Y, rank = rng.normal(0.0, 1.0, X.shape), np.argsort(np.argsort(X[:, 0])) / len(X)
    Y[:, 1] += rank - Y.sum(axis=1) % 1
    return Y


def draw_python_noise(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    generator = random.Random(77)
    return X + np.array([[generator.gauss(0, 2) for _ in row] for row in X])


def draw_after_permutation(n: int, seed: int) -> np.random.Generator:
    generator = np.random.default_rng(seed)
    generator.permutation(n)
    return generator


def draw_row(seed: object) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(5)  # type: ignore[arg-type]


def follow_recurrence(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    Y, state = X.copy(), rng.random(X.shape[1])
    for row in Y:
        state = 3.99 * state * (1.0 - state)
        row += 20.0 * state
    return Y


UNSAFE: dict[str, tuple[Release, str]] = {
    "copies": (copy_some, "copied_records"),
    "near copies": (lambda X, rng: copy_some(X, rng, 1e-3), "copied_records"),
    "copies in other rows": (copy_elsewhere, "copied_records"),
    "low decimals": (
        lambda X, rng: np.round(rng.normal(size=X.shape), 3) + np.roll(X, 1, axis=1) * 1e-5,
        "hidden_digits",
    ),
    "low decimals of a few rows": (hide_few_rows, "hidden_digits"),
    "mantissa": (hide_in_mantissa, "hidden_digits"),
    "parity": (hide_parity, "hidden_digits"),
    "rest of the row's sum": (hide_in_sum, "hidden_digits"),
    "signs of zeros": (
        lambda X, rng: np.where(
            rng.random(X.shape) < 0.6, np.copysign(0.0, X - 2.0), rng.normal(size=X.shape)
        ),
        "hidden_digits",
    ),
    "noise on a grid": (lambda X, rng: X + rng.integers(-9, 10, X.shape), "repeated_noise"),
    "noise by a recurrence": (follow_recurrence, "predictable_noise"),
    "noise on a curve": (
        lambda X, rng: X + 8.0 * np.sin(1.7 * np.arange(len(X)))[:, None],
        "predictable_noise",
    ),
    "noise in equal steps": (
        lambda X, rng: X + 20.0 * (np.outer(np.arange(len(X)), rng.random(X.shape[1])) % 1.0),
        "predictable_noise",
    ),
    "noise that cancels in five rows": (
        lambda X, rng: cancel_in_groups(X, rng, np.arange(len(X)).reshape(-1, 5)),
        "predictable_noise",
    ),
    "noise that cancels in three parts": (
        lambda X, rng: cancel_in_groups(X, rng, np.arange(len(X)).reshape(3, -1).T),
        "predictable_noise",
    ),
    "seed of numpy": (
        lambda X, rng: X + np.random.default_rng(42).normal(0, 2, X.shape),
        "recomputed_noise",
    ),
    "old seed, by column": (
        lambda X, rng: X + np.random.RandomState(123).laplace(0, 2, X.T.shape).T,
        "recomputed_noise",
    ),
    "seed of Python": (draw_python_noise, "recomputed_noise"),
    "seed of another generator of numpy": (
        lambda X, rng: X + np.random.Generator(np.random.Philox(42)).laplace(0, 2, X.shape),
        "recomputed_noise",
    ),
    "seed after a permutation": (
        lambda X, rng: X + draw_after_permutation(len(X), 7).normal(0, 2, X.shape),
        "recomputed_noise",
    ),
    "spawned seeds of rows": (
        lambda X, rng: X + 2.0 * np.array([*map(draw_row, np.random.SeedSequence(7).spawn(300))]),
        "recomputed_noise",
    ),
    "seed and row number": (
        lambda X, rng: X + 2.0 * np.array([draw_row([42, i]) for i in range(len(X))]),
        "recomputed_noise",
    ),
    "seeds of columns": (
        lambda X, rng: (
            X + np.array([np.random.default_rng([j, 1]).uniform(-9, 9, len(X)) for j in range(5)]).T
        ),
        "recomputed_noise",
    ),
    "consecutive seeds of rows": (
        lambda X, rng: X + 2.0 * np.array([draw_row(4321 + i) for i in range(len(X))]),
        "recomputed_noise",
    ),
    "row numbers as seeds": (
        lambda X, rng: (
            X + np.array([np.random.default_rng(i).normal(0, 2, X.shape[1]) for i in range(len(X))])
        ),
        "recomputed_noise",
    ),
}
SAFE: dict[str, Release] = {
    "noise": add_noise,
    "independent": lambda X, rng: rng.normal(X.mean(axis=0), X.std(axis=0), X.shape),
    "means": lambda X, rng: np.tile(X.mean(axis=0), (len(X), 1)),
    "factors": lambda X, rng: X * np.exp(rng.normal(0.0, 1.0, X.shape)),
    "rounded noise": lambda X, rng: np.round(add_noise(X, rng), 1),
    "whole numbers": lambda X, rng: np.round(X - 2.0 + rng.laplace(0.0, 4.0, X.shape)),
}


def draw_table(seed: int) -> tuple[np.ndarray, np.random.Generator]:
    rng = np.random.default_rng([seed, 2**100])
    return rng.gamma(2.0, size=(300, 5)), rng


@pytest.mark.extended
@pytest.mark.parametrize("name", UNSAFE)
def test_metrics_unsafe_release_beyond_chance(name: str) -> None:
    make, metric = UNSAFE[name]
    X, rng = draw_table(1)
    assert metric in find_leaking(X, make(X, rng))


@pytest.mark.slow
@pytest.mark.parametrize("name", SAFE)
def test_metrics_safe_release_within_chance(name: str) -> None:
    for seed in range(3):
        X, rng = draw_table(seed)
        assert find_leaking(X, SAFE[name](X, rng)) == set()


def test_metrics_integers_with_wide_noise_within_chance() -> None:
    rng = np.random.default_rng([3, 2**90])
    X = rng.integers(0, 100, (400, 4)).astype(float)
    Y = X + rng.integers(-80, 81, X.shape)
    assert find_leaking(X, Y) == set()


@pytest.mark.extended
@pytest.mark.parametrize("draw", ["normal", "laplace"])
def test_recomputed_noise_seeds_that_follow_from_the_record_noticed(draw: str) -> None:
    X = np.random.default_rng([6, 2**90]).gamma(2.0, size=(300, 10))
    seeds = (1e4 * X.sum(axis=1)).astype(int) % 9973
    noise = [getattr(np.random.default_rng(seed), draw)(size=10) for seed in seeds]
    assert "recomputed_noise" in find_leaking(X, X + 3.0 * np.array(noise))


@pytest.mark.parametrize("seed", ["row number", "any"])
def test_recomputed_noise_few_seeded_rows_noticed(seed: str) -> None:
    """Noise of the same distribution without small seeds is within chance."""
    rng = np.random.default_rng([13, 2**90])
    X = rng.gamma(2.0, size=(400, 8))
    Y, few = X + rng.normal(0.0, 2.0, X.shape), range(0, 400, 40)
    assert "recomputed_noise" not in find_leaking(X, Y)
    for i in few:
        generator = np.random.default_rng(i if seed == "row number" else 9973 - 23 * i)
        Y[i] = X[i] + generator.normal(0.0, 2.0, 8)
    assert "recomputed_noise" in find_leaking(X, Y)


@pytest.mark.parametrize("release", ["means", "noise", "independent and sorted"])
def test_predictable_noise_order_without_leak_within_chance(release: str) -> None:
    """An order of the records or of the rows alone makes no noise predictable."""
    X, rng = draw_table(7)
    order = np.argsort(X[:, 0])
    makers = {**SAFE, "independent and sorted": lambda X, rng: np.sort(add_noise(X, rng), axis=0)}
    X = X if release == "independent and sorted" else X[order]
    assert "predictable_noise" not in find_leaking(X, makers[release](rng.permutation(X), rng))


def release_with_categories(release: Release, columns: slice) -> tuple[np.ndarray, np.ndarray]:
    """Release some columns of a table that also has a rare category, a sorted day and noise."""
    X, rng = draw_table(8)
    Y = add_noise(X, rng)
    Y[:, columns] = release(X[:, columns], rng)
    rare, day = rng.random((300, 2)) < 0.02, np.sort(rng.integers(0, 900, 300))
    beside = np.column_stack([rare, day]).astype(float)
    shuffled = np.column_stack([rng.permutation(rare), day + rng.integers(-2000, 2001, 300)])
    order = [5, 0, 1, 6, 2, 3, 7, 4]  # categories between the numbers
    return np.hstack([X, beside])[:, order], np.hstack([Y, shuffled])[:, order]


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("noise by a recurrence", slice(0, 5)),
        ("noise that cancels in five rows", slice(0, 5)),
        ("seed of numpy", slice(0, 5)),
        ("seed of numpy", slice(1, 4)),
        ("seed of Python", slice(2, 3)),
        ("old seed, by column", slice(3, 5)),
    ],
)
def test_metrics_noise_beside_categories_noticed(name: str, columns: slice) -> None:
    release, metric = UNSAFE[name]
    assert metric in find_leaking(*release_with_categories(release, columns))


def test_metrics_safe_release_with_categories_within_chance() -> None:
    assert find_leaking(*release_with_categories(add_noise, slice(0, 5))) == set()


def test_predictable_noise_kept_category_within_chance() -> None:
    X, Y = release_with_categories(add_noise, slice(0, 5))
    Y[:, 0] = X[:, 0]  # the first rare category
    assert "predictable_noise" not in find_leaking(X, Y)


def test_repeated_noise_whole_days_within_chance() -> None:
    """On a grid, noise repeats more often than the differences of other rows, which are wider."""
    rng = np.random.default_rng([9, 2**90])
    X = rng.integers(0, 900, (700, 2)).astype(float)
    assert find_leaking(X, X + rng.integers(-700, 701, X.shape)) == set()


def test_repeated_noise_opposite_in_two_rows_noticed() -> None:
    rng = np.random.default_rng([4, 2**90])
    X = rng.gamma(2.0, size=(200, 4))
    noise = rng.laplace(0.0, 2.0, (100, 4))
    assert "repeated_noise" in find_leaking(X, X + np.vstack([noise, -noise]))


def test_repeated_noise_few_rows_moved_alike_noticed() -> None:
    """In a single column of whole numbers, chance repeats as much; in two columns it does not."""
    rng = np.random.default_rng([7, 2**90])
    X = np.round(rng.normal(50.0, 15.0, (500, 6)))
    Y = X + rng.normal(0.0, 20.0, X.shape)
    assert "repeated_noise" not in find_leaking(X, Y)
    Y[::33] = X[::33] + rng.normal(0.0, 20.0, 6)
    assert "repeated_noise" in find_leaking(X, Y)


@pytest.mark.parametrize("place", [0, 50])
def test_repeated_noise_few_rows_moved_alike_in_some_of_many_columns_noticed(place: int) -> None:
    rng = np.random.default_rng([8, 2**90])
    X = np.round(rng.normal(50.0, 15.0, (500, 60)))
    Y, some = X + rng.normal(0.0, 20.0, X.shape), slice(place, place + 6)
    Y[::33, some] = X[::33, some] + rng.normal(0.0, 20.0, 6)
    assert "repeated_noise" in find_leaking(X, Y)


def draw_sizes(kind: str, shape: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
    """Return noise that few rows have, of a form of its own in each of these rows."""
    normal = rng.normal(0.0, 2.0, shape)
    if kind == "one size":
        return np.sign(normal) * np.abs(normal[:, :1])
    if kind == "power of two":
        return np.sign(normal) * 2.0 ** np.round(np.log2(np.abs(normal)))
    if kind == "sum zero":
        return normal - normal.mean(axis=1, keepdims=True)
    assert kind == "length one"
    return normal / np.linalg.norm(normal, axis=1, keepdims=True)


@pytest.mark.parametrize("kind", ["one size", "power of two", "sum zero", "length one"])
@pytest.mark.parametrize("unit", [1.0, np.array([1.0, 30.0, 0.2, 5.0, 700.0])])
def test_repeated_noise_few_rows_of_one_form_noticed(kind: str, unit: float | np.ndarray) -> None:
    X, rng = draw_table(10)
    Y, few = X + rng.normal(0.0, 2.0, X.shape), slice(0, 300, 30)
    Y[few] = X[few] + draw_sizes(kind, X[few].shape, rng)
    keeps_units = kind in ("one size", "power of two")
    assert ("repeated_noise" in find_leaking(X * unit, Y * unit)) == (
        keeps_units or np.ndim(unit) == 0
    )
    Y[few] = X[few] + rng.normal(0.0, 2.0, X[few].shape)
    assert "repeated_noise" not in find_leaking(X * unit, Y * unit)


def test_repeated_noise_sum_that_is_a_multiple_noticed() -> None:
    X, rng = draw_table(11)
    Y = X + rng.normal(0.0, 2.0, X.shape)
    Y[:, 2] -= (Y - X).sum(axis=1) % 0.7
    assert "repeated_noise" in find_leaking(X, Y)


def test_repeated_noise_masks_that_cancel_modulo_the_range_noticed() -> None:
    X, rng = draw_table(14)
    width = np.ptp(X, axis=0)
    Z, masks = (X - X.min(axis=0)) / width, rng.random(X.shape)
    masks[:, 3] = -masks[:, 1:3].sum(axis=1)
    assert "repeated_noise" in find_leaking(X, (Z + masks) % 1.0 * width)
    masks[:, 3] = rng.random(len(X))
    assert "repeated_noise" not in find_leaking(X, (Z + masks) % 1.0 * width)


def test_repeated_noise_class_means_of_whole_numbers_within_chance() -> None:
    rng = np.random.default_rng([12, 2**90])
    label = np.repeat([0, 1, 2], 200)
    X = np.round(30.0 * label[:, None] + rng.normal(50.0, 4.0, (600, 6)))
    means = np.array([X[label == each].mean(axis=0) for each in range(3)])
    assert "repeated_noise" not in find_leaking(X, means[label])


@pytest.mark.parametrize("d", [1, 2, 4, 5, 50])
def test_list_pairs_every_column_in_different_pairs(d: int) -> None:
    pairs = {frozenset(pair) for pair in zip(*list_pairs(d), strict=True)}
    assert len(pairs) == len(list_pairs(d)[0]) == {1: 0, 2: 1, 4: 6, 5: 10, 50: 50}[d]
    assert set().union(*pairs) == (set(range(d)) if d > 1 else set())


def test_hidden_digits_class_that_hardly_varies_within_chance() -> None:
    """The digits of a class with little noise are those of its mean: no leak beyond the class."""
    rng = np.random.default_rng([5, 2**90])
    label = np.repeat([0, 1, 2, 3], 100).astype(np.int32)
    X = 10.0 * label[:, None] + rng.normal(0.0, 1.0, (400, 3))
    Y = 10.0 * label[:, None] + np.where(label == 0, 0.01, 5.0)[:, None] * rng.normal(size=X.shape)
    comparison = replace(make_comparison(X, Y), label=label)
    metric = METRICS["hidden_digits"]
    assert metric.measure(comparison).value <= metric.baseline(comparison)


def test_find_copies_names_the_copied_record() -> None:
    X = np.arange(400.0).reshape(100, 4)
    Y = X + 0.5
    Y[7] = X[31]
    rows, record = find_copies(X, Y)
    assert np.flatnonzero(rows).tolist() == [7]
    assert record[7] == 31


def test_find_most_frequent_counts_the_longest_run() -> None:
    record, count = find_most_frequent(np.array([[3, -1, 3, 2], [-1, -1, -1, -1]]))
    assert (record[0], count.tolist()) == (3, [2, 0])


def test_fit_gamma_quantiles_recovered() -> None:
    from scipy.stats import gamma

    shape, scale = fit_gamma(*gamma(4.0, scale=0.5).ppf([0.5, 0.9]).tolist())
    assert (shape, scale) == pytest.approx((4.0, 0.5), rel=1e-6)


def test_encode_digits_rounding_below_a_digit() -> None:
    assert encode_digits(np.array([[0.3 - 1e-9]])).argmax() == 3
