"""The projection of the record index: what recipients and the other party learn."""

from __future__ import annotations

import numpy as np
import pytest

from ppdm_core.numerics.record_projection import (
    bound_lengths,
    bound_value,
    draw_projection,
    estimate_lengths,
    recover_columns,
    recover_unknown,
)

N, K = 300, 120


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(3)


def make_columns(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns of two parties with one factor in common."""
    level = rng.uniform(0.2, 0.9, (N, 1))
    return level + rng.normal(0, 0.1, (N, 3)), level + rng.normal(0, 0.1, (N, 2))


def test_draw_projection_inner_products_correct_on_average(rng):
    first, second = make_columns(rng)
    found = [(R @ first).T @ (R @ second) for R in (draw_projection(K, N, rng) for _ in range(400))]
    assert np.mean(found, axis=0) == pytest.approx(first.T @ second, rel=0.02)


def test_estimate_lengths_relative_error_as_stated(rng):
    first, _ = make_columns(rng)
    true = np.linalg.norm(first, axis=0)
    found = [estimate_lengths(draw_projection(K, N, rng) @ first) / true for _ in range(400)]
    assert np.std(found) == pytest.approx(1 / np.sqrt(2 * K), rel=0.1)


def test_bound_lengths_holds_and_is_weaker_than_the_estimate(rng):
    first, second = make_columns(rng)
    true, lengths = np.linalg.norm(first, axis=0), np.linalg.norm(second, axis=0)
    broken, ratio = 0, []
    for _ in range(200):
        R = draw_projection(K, N, rng)
        bounds = bound_lengths(R @ first, R @ second, lengths)
        broken += int((bounds > true).any())
        ratio.append(bounds / estimate_lengths(R @ first))
    assert broken <= 10 and 0.5 < np.mean(ratio) < 1


def test_bound_lengths_product_that_is_not_positive_says_nothing(rng):
    R = draw_projection(K, N, rng)
    column = rng.uniform(0.5, 1, (N, 1))
    assert bound_lengths(R @ column, R @ -column, np.linalg.norm(column, axis=0)) == 0


def test_bound_value_others_known_never_above_the_value(rng):
    first, _ = make_columns(rng)
    first[7] = 3.0  # one person who stands out
    others = np.delete(first, 7, axis=0)
    exact = np.linalg.norm(first, axis=0)
    assert bound_value(exact, others) == pytest.approx(3.0)
    assert (bound_value(0.9 * exact, others) <= 3.0).all()
    assert (bound_value(0.1 * exact, others) == 0).all()


def test_recover_columns_other_party_gets_the_share_of_its_rows(rng):
    noise = rng.standard_normal((N, 40))
    R = draw_projection(K, N, rng)
    kept = (recover_columns(R @ noise, R) ** 2).sum() / (noise**2).sum()
    assert kept == pytest.approx(K / N, rel=0.1)


def test_recover_unknown_all_other_records_known_exact(rng):
    first, _ = make_columns(rng)
    R = draw_projection(K, N, rng)
    is_known = np.arange(N) >= 60  # fewer unknown ones than rows
    found = recover_unknown(R @ first, R, np.where(is_known[:, None], first, 0), is_known)
    assert np.abs(found - first).max() < 1e-9
