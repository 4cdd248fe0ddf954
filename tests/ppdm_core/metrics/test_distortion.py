"""Published moments of the distance distortion: mean and variance of d'^2 - d^2."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from ppdm_core.model.release import PublicParameters
from ppdm_core.model.rows import ArrayRows
from ppdm_core.model.schema import Numeric, Schema
from ppdm_core.numerics.linear_map import has_noise, project
from ppdm_core.numerics.noise_distributions import LAPLACE, SAMPLED_DISTRIBUTIONS
from ppdm_core.numerics.rounding import round_outward
from ppdm_core.sanitizers import Sanitizer
from ppdm_core.sanitizers._basis import fit_basis
from ppdm_core.sanitizers._mechanism import Mechanism
from ppdm_core.sanitizers.additive_noise import AdditiveNoise
from ppdm_core.sanitizers.dct_fuzzy import DctFuzzy
from ppdm_core.sanitizers.nonmetric_mds import NonmetricMds
from ppdm_core.sanitizers.pca_laplace import PcaLaplace
from tests.contract import cases
from tests.support.tables import (
    adapt_columns,
    fit_sanitizer,
    make_table,
    read_cells,
    run_sanitizer,
    scale_rows,
)

MEAN = "distance_distortion_mean"
NORMAL = "distance_distortion_variance"  # eq. 13, which takes dropped scores for normal
EXACT = "distance_distortion_variance_exact"


def unit_rows(X: np.ndarray) -> ArrayRows:
    return ArrayRows(Schema(tuple(Numeric(f"x{j}", 0.0, 1.0) for j in range(X.shape[1]))), X)


def normal_rows(n: int, deviations: list[float]) -> ArrayRows:
    """Independent normal columns around 1/2, well inside [0, 1]."""
    noise = np.random.default_rng(1).standard_normal((n, len(deviations)))
    return unit_rows(0.5 + noise * deviations)


def skewed_rows(n: int) -> ArrayRows:
    """Dropped scores far from normal and not independent: few records hold all their energy."""
    rng = np.random.default_rng(2)
    kept = rng.uniform(-0.4, 0.4, (n, 1))
    signs = rng.choice([-1.0, 1.0], (n, 3)) * [1.0, 0.9, 0.8]
    dropped = 0.3 * signs * (rng.random((n, 1)) < 0.1)
    return unit_rows(0.5 + np.hstack([kept, dropped]))


def changes(
    public: PublicParameters, X: np.ndarray, Y: np.ndarray, pairs: int = 100_000
) -> np.ndarray:
    """d'^2 - d^2 of random pairs. With a public map the query is a clean one."""
    n, rng = len(X), np.random.default_rng(3)
    i = rng.integers(0, n, pairs)
    j = (i + rng.integers(1, n, pairs)) % n
    query = Y
    if has_noise(public):
        query, Y = project(public, X), project(public, Y) if public.space == "original" else Y
    return np.sum((query[i] - Y[j]) ** 2, axis=1) - np.sum((X[i] - X[j]) ** 2, axis=1)


def compare_moments(sanitizer: Sanitizer, rows: ArrayRows) -> tuple[dict[str, Any], np.ndarray]:
    """The published moments, and the changes over several draws: noise has heavy tails."""
    fitted = fit_sanitizer(sanitizer, rows)
    X = read_cells(scale_rows(rows, fitted))
    drawn = [run_sanitizer(sanitizer, rows, bytes([k]) * 32, fitted) for k in range(8)]
    found = [changes(each.public, X, read_cells(each.rows), 20_000) for each in drawn]
    return dict(drawn[0].public.facts), np.concatenate(found)


def test_describe_distortion_moments_by_hand():
    one = Mechanism(LAPLACE, np.eye(3)[:, :1], np.ones(3), np.ones(1), np.zeros((1, 2)), False)
    variances = np.array([4.0, 1.0, 0.5])
    # E = 2 - 2 * 1.5; V = 16 * 4 + 20 + 8 * 1.25, or with 7 for what the dropped scores do
    assert one.describe_distortion(variances) == {MEAN: -1.0, NORMAL: 94.0}
    assert one.describe_distortion(variances, 7.0) == {MEAN: -1.0, NORMAL: 94.0, EXACT: 91.0}


def test_fit_basis_dropped_variance_by_hand():
    first, second = [1, -1, 1, -1, 0, 0], [0, 0, 0, 0, 0.5, -0.5]
    rows = unit_rows(np.column_stack([first, second]))
    # The second column has variance 0.1 and is dropped; its square is 1/4 twice and else 0.
    expected = 2 * (2 / 16 - 0.5**2 / 6) / 5 + 4 * 0.1**2
    assert fit_basis(rows, 1)["dropped_variance"] == round_outward(expected)
    assert fit_basis(rows, 2)["dropped_variance"] == 0.0


@pytest.mark.parametrize("b", [0.02, 0.1, 0.3])
def test_pca_laplace_moments_equal_simulation(b):
    deviations = [0.16, 0.12, 0.08, 0.05]
    sanitizer = PcaLaplace(components=2, b=b, basis="private")
    facts, change = compare_moments(sanitizer, normal_rows(4000, deviations))
    kept, dropped = np.array(deviations[:2]) ** 2, np.array(deviations[2:]) ** 2
    mean = 2 * 2 * b**2 - 2 * dropped.sum()
    variance = 16 * b**2 * kept.sum() + 20 * 2 * b**4 + 8 * np.sum(dropped**2)
    size = 2 * 2 * b**2 + 2 * dropped.sum()
    # The records are drawn once: they, not the pairs, set the error of the simulation.
    assert change.mean() == pytest.approx(mean, abs=0.06 * size)
    assert change.var() == pytest.approx(variance, rel=0.15)
    assert facts[MEAN] == pytest.approx(mean, abs=0.15 * size)
    for name in (NORMAL, EXACT):
        assert 0.9 * variance <= facts[name] <= 1.3 * variance


@pytest.mark.parametrize("b", [0.02, 0.1])
def test_exact_variance_skewed_dropped_scores_equals_simulation(b):
    sanitizer = PcaLaplace(components=1, b=b, basis="private")
    facts, change = compare_moments(sanitizer, skewed_rows(4000))
    assert 0.95 * change.var() <= facts[EXACT] <= 1.25 * change.var()
    assert facts[NORMAL] < 0.75 * facts[EXACT]


METHODS: dict[str, Sanitizer] = {
    "pca": PcaLaplace(components=2, b=0.2, basis="private"),
    "pca original": PcaLaplace(components=2, b=0.2, basis="private", space="original"),
    "pca zscore": PcaLaplace(components=2, b=0.2, basis="private", scale="zscore"),
    "pca per_component": PcaLaplace(
        components=3, b=0.3, basis="private", noise_shape="per_component"
    ),
    "pca logistic": PcaLaplace(components=2, b=0.1, basis="private", law="logistic"),
    "pca student_t": PcaLaplace(components=2, b=0.1, basis="private", law="student_t", nu=9),
    "dct_fuzzy": DctFuzzy(b=0.1, p=0.2),
    "nonmetric_mds": NonmetricMds(dimensions=2, landmarks=150, iterations=20),
}


@pytest.mark.parametrize("name", METHODS)
def test_published_moments_each_method_equal_measured(name: str):
    rows = make_table(150 if name == "nonmetric_mds" else 2000)
    facts, change = compare_moments(METHODS[name], rows)
    size = math.sqrt(float(np.mean(change**2)))
    variance = facts.get(EXACT, facts[NORMAL])
    assert facts[MEAN] == pytest.approx(change.mean(), abs=0.1 * size)
    assert 0.9 * change.var() <= variance <= 1.25 * change.var()


@pytest.mark.parametrize("law", SAMPLED_DISTRIBUTIONS)
def test_additive_noise_moments_without_column_variances(law: str):
    sanitizer = AdditiveNoise(b=0.3, law=law, nu=9 if law == "student_t" else None)
    facts, change = compare_moments(sanitizer, make_table(2000, 3))
    assert facts[MEAN] == pytest.approx(change.mean(), rel=0.1)
    assert change.var() <= facts[NORMAL]  # the columns' own variances are not published
    assert EXACT not in facts


def test_published_moments_rounded_to_two_digits():
    """Otherwise releases with several scales would disclose more digits of the variances."""
    rows = make_table(300)
    for b in (0.1, 0.137, 0.3):
        sanitizer = PcaLaplace(components=2, b=b)
        fitted = fit_sanitizer(sanitizer, rows)
        lambdas = np.array(fitted["variances"])
        noise = 16 * b**2 * lambdas[:2].sum() + 20 * 2 * b**4
        assert all(float(f"{value:.2g}") == value for value in lambdas.tolist())
        assert run_sanitizer(sanitizer, rows, fitted=fitted).public.facts == {
            MEAN: round_outward(4 * b**2 - 2 * lambdas[2:].sum()),
            NORMAL: round_outward(noise + 8 * np.sum(lambdas[2:] ** 2)),
            EXACT: round_outward(noise + fitted["dropped_variance"]),
        }


def test_published_moments_foreign_basis_no_exact_variance():
    rows = make_table(300)
    fitted = fit_sanitizer(PcaLaplace(components=2, b=0.3), rows)
    del fitted["dropped_variance"]
    facts = run_sanitizer(PcaLaplace(components=2, b=0.3), rows, fitted=fitted).public.facts
    assert set(facts) == {MEAN, NORMAL}


METHODS_WITH_DISTANCE_FACTS = (
    "pca_laplace",
    "additive_noise",
    "random_rotation",
    "random_projection",
    "dct_fuzzy",
    "nonmetric_mds",
    "pipeline",
)
CASES = {
    id_: case for id_, case in cases.SANITIZERS.items() if case.key in METHODS_WITH_DISTANCE_FACTS
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_sanitizer_distances_distorted_publishes_facts(case: cases.SanitizerCase):
    sanitizer = case.make()
    public = run_sanitizer(sanitizer, adapt_columns(make_table(), sanitizer)).public
    ratio = {"squared_distance_ratio_mean", "squared_distance_ratio_variance"}
    is_published = public.preserves_distances or ratio <= set(public.facts) or MEAN in public.facts
    assert is_published
    # Student's t with 3 degrees has no fourth moment.
    assert MEAN not in public.facts or NORMAL in public.facts or public.facts["nu"] <= 4
