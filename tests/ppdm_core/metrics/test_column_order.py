"""Privacy of the order of cosine coefficients: worst case, average case, number of guesses."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ppdm_core.metrics import METRICS, ReleaseComparison
from ppdm_core.model.errors import NotApplicable
from ppdm_core.model.release import PublicParameters
from ppdm_core.model.rows import ArrayRows
from ppdm_core.model.schema import Numeric, Schema
from ppdm_core.numerics.noise import Noise
from ppdm_core.sanitizers.dct_fuzzy import DctFuzzy

D, N = 6, 300
SCHEMA = Schema(tuple(Numeric(f"x{j}", 0.0, 1.0) for j in range(D)))
KEY = Noise(b"k" * 32)


def make_records() -> np.ndarray:
    rng = np.random.default_rng(5)
    return np.clip(rng.uniform(0.3, 0.7, (N, 1)) + rng.normal(0, 0.08, (N, D)), 0, 1)


def release(**given: Any) -> ReleaseComparison:
    X, method = make_records(), DctFuzzy(**{"b": 0.1, "p": 0.2, **given})
    fitted = method.fit(ArrayRows(SCHEMA, X))
    found = method.sanitize(ArrayRows(SCHEMA, X), KEY, fitted)
    Y = np.concatenate([block.X for block in found.rows.blocks()])
    centre, loadings = method.leaked(SCHEMA, KEY, fitted)
    known = replace(found.public, centre=centre, loadings=loadings)
    return ReleaseComparison(X, np.zeros(N, np.int32), Y, found.public, steward_map=known)


def test_order_privacy_known_order_is_the_inverse_transform():
    """The worst case by hand: the kept coefficients in their places, all others zero."""
    from scipy.fft import dct, idct

    compared = release()
    measured = METRICS["order_privacy"].measure(compared)
    C = dct(compared.X, type=2, norm="ortho", axis=1)
    kept = [i for i in range(D) if np.abs(compared.Y - C[:, [i]]).min(axis=1).max() < 1e-6]
    C[:, [i for i in range(D) if i not in kept]] = 0
    low, high = np.quantile(
        compared.X - idct(C, type=2, norm="ortho", axis=1), [0.025, 0.975], axis=0
    )
    expected = np.mean((high - low) / np.ptp(compared.X, axis=0))
    assert 0 < len(kept) < D
    assert measured.notes["known_order"] == pytest.approx(expected, abs=1e-6)
    assert measured.value > 1.5 * expected  # on average a guess is worse than knowledge


def test_order_privacy_of_one_party_measures_its_own_columns():
    X, names = make_records(), [*SCHEMA.names]
    method = DctFuzzy(scale="minmax", order=names, others=names[3:])
    fitted = {"kept": [0, 1, 2], "order": [2, 0, 1], "without_energy": 0}
    own = Schema(SCHEMA.numeric[:3])
    found = method.sanitize(ArrayRows(own, X[:, :3]), KEY, fitted)
    Y = np.concatenate([block.X for block in found.rows.blocks()])
    compared = ReleaseComparison(X[:, :3], np.zeros(N, np.int32), Y, found.public)
    measured = METRICS["order_privacy"].measure(compared)
    assert 0 < measured.notes["known_order"] < METRICS["order_privacy"].baseline(compared)
    assert METRICS["order_guesses"].measure(compared).value == pytest.approx(
        math.log10(sum(math.perm(i, 3) for i in range(3, 2 * D + 1)))
    )


def test_order_guesses_counts_orders_of_all_column_counts():
    compared = release()
    K = compared.Y.shape[1]
    expected = math.log10(sum(math.perm(i, K) for i in range(K, 2 * D + 1)))
    metric = METRICS["order_guesses"]
    assert metric.measure(compared).value == pytest.approx(expected)
    assert metric.baseline(compared) == 0.0


@pytest.mark.parametrize("name", ["order_privacy", "order_guesses"])
def test_order_metrics_other_methods_do_not_apply(name: str):
    X = make_records()
    public = PublicParameters("copy", "original", SCHEMA.names)
    with pytest.raises(NotApplicable, match="secret order"):
        METRICS[name].measure(ReleaseComparison(X, np.zeros(N, np.int32), X, public))
