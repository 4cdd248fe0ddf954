from __future__ import annotations

import csv
import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.integrate import quad

from ppdm_core.errors import BadInput
from ppdm_core.noise import Noise
from ppdm_core.rows import ArrayRows
from ppdm_core.sanitizers import _resampling as resampling
from ppdm_core.sanitizers.kde_resample import KdeResample, kernel_correction, normal_reference
from ppdm_core.scaling import Scaling
from ppdm_core.types import Categorical, Numeric, Rows, Schema
from tests.contract.tables import KEY, LARGE, fit, inserted, release, scaled, schema, table, values


def labels(rows: Rows) -> np.ndarray:
    return np.concatenate([block.label for block in rows.blocks()])


def keys_of(rows: Rows) -> list[bytes]:
    return [bytes(key) for block in rows.blocks() for key in block.key]


def contents(rows: Rows) -> set[bytes]:
    return {bytes(row) for row in values(rows)}


def relabelled(label: list[int], X: np.ndarray | None = None) -> ArrayRows:
    rows = table(len(label))
    columns = Schema(schema().numeric, label=Categorical("label", ("a", "b", "c")))
    return ArrayRows(columns, rows.whole.X if X is None else X, np.array(label, dtype=np.int32))


def test_the_rule_of_the_paper():
    assert normal_reference(np.array([100.0]), 1)[0] == pytest.approx(1.05922 * 100**-0.2, rel=1e-5)
    assert normal_reference(np.array([50.0]), 4)[0] == pytest.approx((4 / 6) ** 0.125 * 50**-0.125)


@pytest.mark.parametrize("d", [1, 4, 30])
def test_the_correction_is_that_of_the_two_kernels(d):
    def constant(kernel: Any, reach: float) -> float:
        """What the bandwidth of least error has of its kernel."""
        roughness = quad(lambda u: kernel(u) ** 2, -reach, reach)[0]
        spread = quad(lambda u: u**2 * kernel(u), -reach, reach)[0]
        return (roughness**d / spread**2) ** (1 / (d + 4))

    ratio = constant(lambda u: 0.75 * (1 - u**2), 1.0) / constant(stats.norm.pdf, 12.0)
    assert kernel_correction(d) == pytest.approx(ratio, rel=1e-9)
    assert 2.1 < kernel_correction(d) < 2.22


def test_the_kernel_is_the_median_of_three_parts_of_the_bits():
    top = 2**42 - 1

    def steps(a: int, b: int, c: int) -> float:
        words = (a << 22) | (c >> 20), (b << 22) | ((c & (2**20 - 1)) << 2)
        return float(resampling.kernel_steps(np.array(words, dtype=np.uint64), np.array(2.0**41)))

    assert steps(0, 0, top) == np.rint(-(2.0**41) + 0.5)
    assert steps(top, 0, top) == -steps(0, 0, top)
    for parts in ((5, 2**41, top), (top, 5, 2**41), (2**41, top, 5)):
        assert steps(*parts) == np.rint(0.5)


def test_the_kernel_has_its_exact_law():
    bits = np.random.default_rng(1).integers(0, 2**64, (200_000, 2), dtype=np.uint64)
    fine = resampling.kernel_steps(bits, np.array(2.0**30)) * 2.0**-30
    assert stats.kstest(fine, lambda e: stats.beta(2, 2).cdf((e + 1) / 2)).pvalue > 1e-6
    coarse = resampling.kernel_steps(bits, np.array(3.5))  # -3 to 3, and the ends 7/2 -> 4 rarely
    edges = np.clip(np.arange(-4, 5) - 0.5, -3.5, 3.5) / 3.5
    cdf = stats.beta(2, 2).cdf((edges + 1) / 2)
    expected = np.diff(cdf)[1:] * len(bits)
    observed = [np.count_nonzero(coarse == k) for k in range(-3, 4)]
    assert stats.chisquare(observed, expected).pvalue > 1e-6


def test_draws_are_independent_and_uniform():
    rows = table(2)
    counts, wanted = np.array([0, 2, 0]), np.array([0, 2, 0])
    plain = ArrayRows(rows.schema, rows.whole.X, np.zeros(2, dtype=np.int32), rows.whole.key)
    seen = Counter()
    for i in range(800):
        sources = resampling.Sources(Noise(KEY).derive(str(i)), "kde_resample", b"")
        until = sources.last_arrivals(plain, counts, wanted)
        drawn = sources.copied(plain.whole, until)
        seen[int(np.sum(drawn.X[:, 0] == rows.whole.X[0, 0]))] += 1
    assert stats.chisquare([seen[k] for k in range(3)], [200, 400, 200]).pvalue > 1e-6


def test_the_search_widens_until_it_finds_the_last_draw(monkeypatch):
    rows = table(300)
    expected = values(release(KdeResample(), rows).rows)
    monkeypatch.setattr(resampling, "MIDDLE", 1e-3)
    assert np.array_equal(values(release(KdeResample(), rows).rows), expected)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 50), min_size=1, max_size=6).filter(any), st.integers(1, 500))
def test_rows_are_shared_out_by_size(sizes, M):
    counts = np.array(sizes)
    wanted = resampling.shared_out(M, counts)
    assert wanted.sum() == M
    assert np.all(np.abs(wanted - M * counts / counts.sum()) < 1)
    assert not wanted[counts == 0].any()


@pytest.mark.parametrize(("asked", "expected"), [(None, 90), (1, 1), (45, 45), (900, 900)])
def test_the_count_of_rows_is_exact_and_classes_keep_their_shares(asked, expected):
    rows = table(90)
    released = release(KdeResample(rows=asked), rows).rows
    assert released.n == expected
    share = np.bincount(rows.whole.label) * expected / 90
    assert np.all(np.abs(np.bincount(labels(released), minlength=2) - share) < 1)
    assert len(set(keys_of(released))) == expected


def test_a_smaller_release_is_part_of_a_larger_one():
    rows = table(200)
    few, many = (contents(release(KdeResample(rows=k), rows).rows) for k in (100, 300))
    assert len(few) == 100
    assert len(few - many) <= 2  # a class may get one row less


def test_another_record_moves_few_rows():
    rows, sanitizer = table(LARGE), KdeResample()
    fitted = fit(sanitizer, rows)
    before = contents(release(sanitizer, rows, fitted=fitted).rows)
    after = contents(release(sanitizer, inserted(rows, 5000), fitted=fitted).rows)
    assert len(before) == LARGE
    assert 1 <= len(before ^ after) <= 20


def test_deviations_are_those_of_the_classes():
    rows = table(LARGE)
    fitted = fit(KdeResample(), rows)
    X, label = values(scaled(rows, fitted)), rows.whole.label
    expected = [np.zeros(5), *(X[label == c].std(axis=0, ddof=1) for c in (0, 1))]
    np.testing.assert_allclose(fitted["deviations"], [*expected, X.std(axis=0, ddof=1)], rtol=1e-5)
    assert fitted["counts"] == [0, *np.bincount(label), LARGE]


@pytest.mark.parametrize("bandwidth", ["paper", "corrected"])
def test_moments_of_the_rows(bandwidth):
    """Mean as it was; variance plus a fifth of the squared bandwidth."""
    rows, sanitizer = table(2000), KdeResample(bandwidth=bandwidth, clip=False, rows=20_000)
    fitted = fit(sanitizer, rows)
    X, released = values(scaled(rows, fitted)), release(sanitizer, rows, fitted=fitted).rows
    Y, h = values(released), sanitizer.bandwidths(rows.schema, fitted)
    for c in (0, 1):
        x, y = X[rows.whole.label == c], Y[labels(released) == c]
        variance = x.var(axis=0) + h[c + 1] ** 2 / 5
        assert np.all(np.abs(y.mean(axis=0) - x.mean(axis=0)) < 5 * np.sqrt(variance / len(y)))
        spread = stats.kurtosis(y, axis=0) + 2
        assert np.all(np.abs(y.var(axis=0) / variance - 1) < 5 * np.sqrt(spread / len(y)))


@settings(max_examples=20, deadline=None)
@given(
    st.integers(0, 10**6),
    st.sampled_from(["minmax", "zscore", "none"]),
    st.sampled_from(["paper", "corrected"]),
)
def test_every_row_is_near_a_record_of_its_class(seed, scale, bandwidth):
    rows = table(40, seed=seed)
    sanitizer = KdeResample(scale=scale, bandwidth=bandwidth, clip=False, lonely="merge")
    fitted = fit(sanitizer, rows)
    stored = scaled(rows, fitted)
    X, released = values(stored), release(sanitizer, rows, fitted=fitted).rows
    Y, label = values(released), labels(released)
    h = sanitizer.bandwidths(stored.schema, fitted)[label + 1] + resampling.grid_steps(
        stored.schema
    )
    is_near = np.all(np.abs(Y[:, None] - X[None]) <= h[:, None], axis=2)
    assert np.all(np.any(is_near & (label[:, None] == rows.whole.label[None]), axis=1))
    assert (released.schema.lows <= Y).all()
    assert (released.schema.highs >= Y).all()


def test_clipping_keeps_the_bounds():
    """As an afterthought: with and without it, the rows are the same draws."""
    X = np.tile([schema().lows, schema().highs], (100, 1))
    X[::2] = table(100).whole.X
    rows = ArrayRows(schema(), X)
    inside, outside = (values(release(KdeResample(clip=c), rows).rows) for c in (True, False))
    assert inside.min() >= 0.0
    assert inside.max() <= 1.0
    assert outside.max() > 1.0
    assert np.array_equal(np.clip(outside, 0.0, 1.0), inside)


@pytest.mark.parametrize("scale", ["minmax", "zscore", "none"])
def test_integers_are_whole_in_their_own_units(scale):
    rng = np.random.default_rng(3)
    columns = (Numeric("age", 0.0, 99.5), Numeric("income", -3.0, 7.0))
    X = np.column_stack([rng.integers(0, 100, 500), rng.normal(0, 1, 500).clip(-3, 7)])
    rows, sanitizer = ArrayRows(Schema(columns), X), KdeResample(scale=scale, integers=["age"])
    fitted = fit(sanitizer, rows)
    Y = Scaling.from_dict(fitted["scaling"]).undo(values(release(sanitizer, rows).rows))
    np.testing.assert_allclose(Y[:, 0], np.rint(Y[:, 0]), atol=1e-9)
    assert Y[:, 0].min() >= -1e-9
    assert Y[:, 0].max() <= 99 + 1e-9
    assert np.mean(np.abs(Y[:, 1] - np.rint(Y[:, 1])) > 1e-3) > 0.9


def test_the_floor_is_a_share_of_the_range():
    rows = table(400)
    fitted = fit(KdeResample(), rows)
    columns = scaled(rows, fitted).schema
    usual = KdeResample().bandwidths(columns, fitted)
    raised = KdeResample(bandwidth="floor", floor=0.25).bandwidths(columns, fitted)
    np.testing.assert_array_equal(raised, np.maximum(usual, 0.25))
    assert usual.min() < 0.25 < usual.max()


def test_a_class_of_one_is_refused_or_merged():
    rows = relabelled([0] * 30 + [1] * 29 + [2])
    with pytest.raises(BadInput, match="1 of the classes had one record"):
        release(KdeResample(), rows)
    sanitizer = KdeResample(lonely="merge")
    released = release(sanitizer, rows).rows
    fitted = fit(sanitizer, rows)
    X = values(scaled(rows, fitted))
    own = values(released)[labels(released) == 2]
    assert len(own) == 1
    assert np.all(own != X[59])
    whole = normal_reference(np.array([60.0]), 5) * X.std(axis=0, ddof=1) * kernel_correction(5)
    h = sanitizer.bandwidths(rows.schema, fitted)[3]
    np.testing.assert_allclose(h, whole, rtol=1e-5)
    assert np.all(np.abs(own - X[59]) <= h)


def test_a_class_of_equal_records_is_lonely_too():
    rows = relabelled([0] * 30 + [1] * 3)
    X = rows.whole.X.copy()
    X[30:] = X[30]
    with pytest.raises(BadInput, match="or equal ones"):
        release(KdeResample(), relabelled([0] * 30 + [1] * 3, X))


def test_a_class_that_was_not_there_when_bandwidths_were_learned():
    fitted = fit(KdeResample(), relabelled([0] * 30 + [1] * 30))
    later = relabelled([0] * 30 + [1] * 28 + [2] * 2)
    with pytest.raises(BadInput, match='lonely = "merge"'):
        release(KdeResample(), later, fitted=fitted)
    assert release(KdeResample(lonely="merge"), later, fitted=fitted).rows.n == 60


def test_records_that_are_all_alike_need_a_floor():
    rows = ArrayRows(schema(), np.tile(table(1).whole.X, (10, 1)))
    with pytest.raises(BadInput, match="All records are alike"):
        release(KdeResample(), rows)
    floor = KdeResample(bandwidth="floor", floor=0.05, lonely="merge")
    assert len(contents(release(floor, rows).rows)) == 10


def test_columns_that_are_copied_are_counted():
    X = table(60).whole.X.copy()
    X[:30, 2] = X[0, 2]
    rows = relabelled([0] * 30 + [1] * 30, X)
    released = release(KdeResample(), rows)
    assert released.counts == {"columns constant within a class": 1}
    own = values(released.rows)[labels(released.rows) == 0]
    assert np.ptp(own, axis=0)[2] == 0
    floor = release(KdeResample(bandwidth="floor", floor=0.05), rows)
    assert floor.counts == {"columns constant within a class": 0}
    assert np.ptp(values(floor.rows)[labels(floor.rows) == 0], axis=0)[2] > 0


def test_the_largest_chance_of_one_value():
    rows = table(60)
    assert release(KdeResample(clip=False), rows).atom < 1e-9
    assert release(KdeResample(), rows).atom == pytest.approx(0.5, abs=1e-9)  # at a bound
    # x1 is 6 wide: a whole step is a sixth of the range
    sanitizer = KdeResample(clip=False, integers=("x1",))
    fitted = fit(sanitizer, rows)
    h = sanitizer.bandwidths(rows.schema, fitted)[1:, 1].min()
    v = min(1.0, 1 / 6 / 2 / h)
    assert release(sanitizer, rows).atom == pytest.approx((3 * v - v**3) / 2)


def test_bandwidths_are_not_public():
    public = release(KdeResample(bandwidth="floor", floor=0.1), table(60)).public
    assert dict(public.facts) == {"kernel": "epanechnikov", "bandwidth": "floor", "floor": 0.1}
    assert public.scales is None
    assert public.ranges is None
    assert public.grid is None


def test_it_promises_nothing():
    promise = KdeResample().guarantee(schema(), {})
    assert promise.kind == "empirical"
    assert promise.ln_record == math.inf


@pytest.mark.parametrize(
    ("parameters", "told"),
    [
        ({"rows": 0}, "'rows'"),
        ({"rows": 2.5}, "'rows'"),
        ({"rows": True}, "'rows'"),
        ({"bandwidth": "scott"}, "one of paper, corrected, floor"),
        ({"bandwidth": "floor"}, "'floor'"),
        ({"floor": 0.1}, "'floor'"),
        ({"bandwidth": "floor", "floor": 1.0}, "a share above 0 and below 1"),
        ({"clip": 1}, "'clip'"),
        ({"integers": "age"}, "'integers'"),
        ({"integers": [1]}, "'integers'"),
        ({"lonely": "drop"}, "one of refuse, merge"),
    ],
)
def test_parameters_are_checked(parameters, told):
    with pytest.raises(BadInput, match=told):
        KdeResample(**parameters)


def test_what_does_not_fit_the_table_is_refused():
    with pytest.raises(BadInput, match="at most 10 times the number of records"):
        release(KdeResample(rows=601), table(60))
    with pytest.raises(BadInput, match="'age' in 'integers' is not a numeric feature"):
        release(KdeResample(integers=["age"]), table(60))
    with pytest.raises(BadInput, match="at least 2 records; 1"):
        release(KdeResample(), table(1))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "most"), [("pima", 0.03), ("svmguide1_train", 0.03)])
def test_a_classifier_loses_little(shared_data: Path, name: str, most: float):
    """Tan, Ng (2007): error rates rise by at most three points."""
    from sklearn.neighbors import KNeighborsClassifier

    with (shared_data / f"{name}.csv").open() as file:
        _, *lines = csv.reader(file)
    X = np.array([line[:-1] for line in lines], dtype=np.float64)
    _, label = np.unique([line[-1] for line in lines], return_inverse=True)
    columns = tuple(
        Numeric(f"x{j}", low, high)
        for j, (low, high) in enumerate(zip(X.min(axis=0), X.max(axis=0), strict=True))
    )
    own = Schema(columns, label=Categorical("label", ("a", "b")))
    losses = []
    for seed in range(10):
        order = np.random.default_rng(seed).permutation(len(X))
        train, test = np.split(order, [3 * len(X) // 4])
        rows = ArrayRows(own, X[train], label[train].astype(np.int32))
        sanitizer = KdeResample(bandwidth="paper")
        fitted = fit(sanitizer, rows)
        released = release(sanitizer, rows, bytes([seed]) * 32, fitted).rows
        scaling = Scaling.from_dict(fitted["scaling"])
        asked = (X[test] - scaling.offset) / scaling.unit
        right = [
            KNeighborsClassifier(11).fit(data, code).score(asked, label[test])
            for data, code in (
                (values(scaled(rows, fitted)), label[train]),
                (values(released), labels(released)),
            )
        ]
        losses.append(right[0] - right[1])
    assert np.mean(losses) <= most + 2 * np.std(losses) / np.sqrt(len(losses))
