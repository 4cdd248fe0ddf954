from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.integrate import quad

from ppdm_core.model.rows import ArrayRows, Rows
from ppdm_core.numerics.noise import Noise
from ppdm_core.sanitizers import _resampling as resampling
from ppdm_core.sanitizers.kde_resample import KdeResample, kernel_correction, normal_reference
from tests.support.class_tables import contents, labels
from tests.support.tables import (
    KEY,
    LARGE,
    fit_sanitizer,
    insert_record,
    make_table,
    read_cells,
    run_sanitizer,
)


def read_keys(rows: Rows) -> list[bytes]:
    return [bytes(key) for block in rows.blocks() for key in block.key]


def test_normal_reference_matches_paper():
    assert normal_reference(np.array([100.0]), 1)[0] == pytest.approx(1.05922 * 100**-0.2, rel=1e-5)
    assert normal_reference(np.array([50.0]), 4)[0] == pytest.approx((4 / 6) ** 0.125 * 50**-0.125)


@pytest.mark.parametrize("d", [1, 4, 30])
def test_kernel_correction_matches_both_kernels(d):
    def constant(kernel: Any, reach: float) -> float:
        """Return the kernel's factor in the bandwidth of least error."""
        roughness = quad(lambda u: kernel(u) ** 2, -reach, reach)[0]
        spread = quad(lambda u: u**2 * kernel(u), -reach, reach)[0]
        return (roughness**d / spread**2) ** (1 / (d + 4))

    ratio = constant(lambda u: 0.75 * (1 - u**2), 1.0) / constant(stats.norm.pdf, 12.0)
    assert kernel_correction(d) == pytest.approx(ratio, rel=1e-9)
    assert 2.1 < kernel_correction(d) < 2.22


def test_kernel_steps_are_median_of_three_parts():
    top = 2**42 - 1

    def steps(a: int, b: int, c: int) -> float:
        words = (a << 22) | (c >> 20), (b << 22) | ((c & (2**20 - 1)) << 2)
        return float(
            resampling.draw_kernel_steps(np.array(words, dtype=np.uint64), np.array(2.0**41))
        )

    assert steps(0, 0, top) == np.rint(-(2.0**41) + 0.5)
    assert steps(top, 0, top) == -steps(0, 0, top)
    for parts in ((5, 2**41, top), (top, 5, 2**41), (2**41, top, 5)):
        assert steps(*parts) == np.rint(0.5)


def test_kernel_steps_have_exact_distribution():
    bits = np.random.default_rng(1).integers(0, 2**64, (200_000, 2), dtype=np.uint64)
    fine = resampling.draw_kernel_steps(bits, np.array(2.0**30)) * 2.0**-30
    assert stats.kstest(fine, lambda e: stats.beta(2, 2).cdf((e + 1) / 2)).pvalue > 1e-6
    coarse = resampling.draw_kernel_steps(
        bits, np.array(3.5)
    )  # -3 to 3, and the ends 7/2 -> 4 rarely
    edges = np.clip(np.arange(-4, 5) - 0.5, -3.5, 3.5) / 3.5
    cdf = stats.beta(2, 2).cdf((edges + 1) / 2)
    expected = np.diff(cdf)[1:] * len(bits)
    observed = [np.count_nonzero(coarse == k) for k in range(-3, 4)]
    assert stats.chisquare(observed, expected).pvalue > 1e-6


def test_sources_draws_are_independent_and_uniform():
    rows = make_table(2)
    counts, wanted = np.array([0, 2, 0]), np.array([0, 2, 0])
    plain = ArrayRows(rows.schema, rows.whole.X, np.zeros(2, dtype=np.int32), rows.whole.key)
    seen = Counter()
    for i in range(800):
        sources = resampling.Sources(Noise(KEY).derive(str(i)), "kde_resample", b"")
        until = sources.find_stop_times(plain, counts, wanted)
        drawn = sources.copy_drawn(plain.whole, until)
        seen[int(np.sum(drawn.X[:, 0] == rows.whole.X[0, 0]))] += 1
    assert stats.chisquare([seen[k] for k in range(3)], [200, 400, 200]).pvalue > 1e-6


def test_find_stop_times_narrow_window_widens(monkeypatch):
    rows = make_table(300)
    expected = read_cells(run_sanitizer(KdeResample(), rows).rows)
    monkeypatch.setattr(resampling, "SEARCH_DEVIATIONS", 1e-3)
    assert np.array_equal(read_cells(run_sanitizer(KdeResample(), rows).rows), expected)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 50), min_size=1, max_size=6).filter(any), st.integers(1, 500))
def test_allocate_rows_by_class_size(sizes, M):
    counts = np.array(sizes)
    wanted = resampling.allocate_rows(M, counts)
    assert wanted.sum() == M
    assert np.all(np.abs(wanted - M * counts / counts.sum()) < 1)
    assert not wanted[counts == 0].any()


@pytest.mark.parametrize(("asked", "expected"), [(None, 90), (1, 1), (45, 45), (900, 900)])
def test_sanitize_row_count_exact_and_class_shares_kept(asked, expected):
    rows = make_table(90)
    released = run_sanitizer(KdeResample(rows=asked), rows).rows
    assert released.n == expected
    share = np.bincount(rows.whole.label) * expected / 90
    assert np.all(np.abs(np.bincount(labels(released), minlength=2) - share) < 1)
    assert len(set(read_keys(released))) == expected


def test_sanitize_fewer_rows_is_subset():
    rows = make_table(200)
    few, many = (contents(run_sanitizer(KdeResample(rows=k), rows).rows) for k in (100, 300))
    assert len(few) == 100
    assert len(few - many) <= 2  # a class may get one row less


def test_sanitize_additional_record_changes_few_rows():
    rows, sanitizer = make_table(LARGE), KdeResample()
    fitted = fit_sanitizer(sanitizer, rows)
    before = contents(run_sanitizer(sanitizer, rows, fitted=fitted).rows)
    after = contents(run_sanitizer(sanitizer, insert_record(rows, 5000), fitted=fitted).rows)
    assert len(before) == LARGE
    assert 1 <= len(before ^ after) <= 20
