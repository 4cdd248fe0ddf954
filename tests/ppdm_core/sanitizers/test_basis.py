from __future__ import annotations

import numpy as np
import pytest

from ppdm_core.model.errors import BadInput
from ppdm_core.model.rows import ArrayRows
from ppdm_core.model.schema import Numeric, Schema
from ppdm_core.numerics.rounding import round_outward
from ppdm_core.sanitizers._basis import LOADING_STEP, fit_basis
from ppdm_core.sanitizers.pca_laplace import PcaLaplace
from tests.support.tables import fit_sanitizer, make_table, read_cells, scale_rows


def make_unit_schema(d: int) -> Schema:
    return Schema(tuple(Numeric(f"x{j}", 0.0, 1.0) for j in range(d)))


def make_normal_rows(n: int, deviations: list[float], seed: int = 0) -> ArrayRows:
    """Independent normal columns around 1/2, well inside [0, 1]."""
    X = 0.5 + np.random.default_rng(seed).standard_normal((n, len(deviations))) * deviations
    return ArrayRows(make_unit_schema(len(deviations)), X)


def test_fit_basis_loadings_rounded_orthonormal_fixed_sign():
    rows = make_table(300)
    fitted = PcaLaplace(components=4, b=0.3, scale="none").fit(rows)
    L = np.array(fitted["loadings"])  # (d, s)
    assert np.array_equal(L / LOADING_STEP, np.rint(L / LOADING_STEP))
    np.testing.assert_allclose(L.T @ L, np.eye(4), atol=1e-5)
    assert (L[np.argmax(np.abs(L), axis=0), range(4)] > 0).all()
    cov = np.cov(rows.whole.X.T)
    eigenvalues, V = np.linalg.eigh(cov)
    for i in range(4):
        assert abs(V[:, -1 - i] @ L[:, i]) == pytest.approx(1.0, abs=1e-5)
    np.testing.assert_allclose(fitted["variances"], eigenvalues[::-1], rtol=0.1)
    assert np.all(np.array(fitted["variances"]) >= eigenvalues[::-1] * (1 - 1e-6))


def test_fit_basis_flipped_eigenvectors_same_loadings(monkeypatch):
    rows = make_table(300)
    before = fit_basis(rows, 3)
    solve = np.linalg.eigh

    def flipped(cov):
        eigenvalues, vectors = solve(cov)
        return eigenvalues, -vectors

    monkeypatch.setattr(np.linalg, "eigh", flipped)
    assert fit_basis(rows, 3) == before


def test_fit_basis_ranges_contain_every_score():
    rows = make_table(300)
    sanitizer = PcaLaplace(components=3, b=0.3)
    fitted = fit_sanitizer(sanitizer, rows)
    X = read_cells(scale_rows(rows, fitted))
    T = (X - 0.5) @ np.array(fitted["loadings"])
    low, high = np.array(fitted["ranges"]).T
    assert (low <= T.min(axis=0)).all()
    assert (high >= T.max(axis=0)).all()
    # Two digits outward: not wider than a tenth more.
    assert (high - low <= 1.2 * np.ptp(T, axis=0)).all()


@pytest.mark.parametrize(
    ("value", "up", "down"),
    [(0.0, 0.0, 0.0), (0.1234, 0.13, 0.12), (-0.1234, -0.12, -0.13), (5600.0, 5600.0, 5600.0),
     (99.1, 100.0, 99.0), (1e-9 * 1.01, 1.1e-9, 1e-9)],
)  # fmt: skip
def test_round_outward_any_value_has_two_digits(value, up, down):
    assert round_outward(value) == pytest.approx(up, rel=1e-9)
    assert round_outward(value, up=False) == pytest.approx(down, rel=1e-9)


@pytest.mark.parametrize(
    ("components", "s"),
    [(1, 1), (4, 4), (0.5, 2), (0.99, 3), (0.01, 1), ({"variance": 0.6}, 1),
     ({"variance": 0.75}, 2), ({"variance": 1.0}, 4)],
)  # fmt: skip
def test_fit_basis_components_as_count_share_or_variance(components, s):
    # Variances 16 : 4 : 4 : 1, of which the first holds 64 %, the first two 80 %.
    rows = make_normal_rows(4000, [0.16, 0.08, 0.08, 0.04])
    fitted = PcaLaplace(components=components, b=0.3).fit(rows)
    assert np.array(fitted["loadings"]).shape == (4, s)


def test_fit_basis_components_above_rank_raise():
    X = np.random.default_rng(0).random((50, 2)) @ np.array([[0.5, 0.2, 0.1], [0.1, 0.4, 0.3]])
    rows = ArrayRows(make_unit_schema(3), X)
    with pytest.raises(BadInput, match=r"'components' parameter of PcaLaplace .*\[1, 2\]. Got 3"):
        PcaLaplace(components=3, b=0.3).fit(rows)
    fitted = PcaLaplace(components={"variance": 1.0}, b=0.3).fit(rows)
    assert np.array(fitted["loadings"]).shape == (3, 2)
