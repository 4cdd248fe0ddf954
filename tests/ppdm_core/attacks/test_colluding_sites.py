"""Colluding sites: what the moments of a site's set-aside records add for complete records.

Together with the centre, all other sites know mean and covariance of the records that one site set
aside. For a person who is known completely, they tell nothing of a row that its public noise and
the other rows do not tell: three linkages that do use them find no more persons. What they add
otherwise is tested in `test_pooled_moments.py`.
"""

from __future__ import annotations

import numpy as np
import pytest

from ppdm_core.attacks.colluding_sites import ColludingSites
from ppdm_core.model.release import PublicParameters
from tests.support.views import make_columns, make_records, make_view

PERSONS, SET_ASIDE, PARTNERS, D, S = 150, 40, 200, 4, 2
DRAWS = 12


def make_people(n: int, rng: np.random.Generator, shift: float) -> np.ndarray:
    """Return correlated records of a site; each site has another mean."""
    level = 0.12 * rng.standard_normal((n, 1))
    return np.clip(0.5 + shift + level + 0.05 * rng.standard_normal((n, D)), 0.0, 1.0)


def find_nearest(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    return np.argmin(((A[:, None, :] - B[None, :, :]) ** 2).sum(axis=2), axis=1)


def whiten(cov: np.ndarray) -> np.ndarray:
    return np.linalg.inv(np.linalg.cholesky(cov + 1e-9 * np.eye(len(cov)))).T


def link_with_moments(
    X: np.ndarray, Z: np.ndarray, loadings: np.ndarray, b: float, set_aside: np.ndarray
) -> list[np.ndarray]:
    """Return links of records to rows by three linkages that use the moments."""
    mean, cov = set_aside.mean(axis=0) - 0.5, np.cov(set_aside.T)
    T, noise = (X - 0.5) @ loadings, 2 * b**2 * np.eye(S)
    marginal = loadings.T @ cov @ loadings + noise  # of a row of a person of this site
    centre = mean @ loadings
    gain = cov @ loadings @ np.linalg.inv(marginal)
    X_hat = 0.5 + mean + (Z - centre) @ gain.T  # the posterior mean of each row
    error = cov - gain @ loadings.T @ cov
    by_columns, by_error = whiten(cov), whiten(error + 1e-6 * np.eye(D))
    surprise = np.abs(T[:, None, :] - Z[None, :, :]).sum(axis=2) / b
    far = np.einsum("ij,jk,ik->i", Z - centre, np.linalg.inv(marginal), Z - centre)
    return [
        find_nearest(X @ by_columns, X_hat @ by_columns),
        find_nearest(X @ by_error, X_hat @ by_error),
        np.argmin(surprise - 0.5 * far, axis=1),
    ]


@pytest.mark.extended
@pytest.mark.parametrize("b", [0.01, 0.03, 0.1])
def test_colluding_sites_moments_of_set_aside_records_find_no_more_persons(b: float):
    rates = []
    for draw in range(DRAWS):
        rng = np.random.default_rng([draw, 22])
        X, set_aside = make_people(PERSONS, rng, 0.1), make_people(SET_ASIDE, rng, 0.1)
        others = make_people(PARTNERS, rng, -0.1)
        pooled = np.concatenate([X, others])
        _, vectors = np.linalg.eigh(np.cov(pooled.T))
        loadings = vectors[:, ::-1][:, :S]
        Z = (pooled - 0.5) @ loadings + rng.laplace(0, b, (len(pooled), S))
        public = PublicParameters(
            "pca_laplace",
            "components",
            ("component_1", "component_2"),
            np.full(D, 0.5),
            loadings,
            "laplace",
            np.full(S, b),
        )
        view = make_view(
            Z,
            schema=make_columns(D),
            public=public,
            targets=make_records(X),
            partner_rows=np.arange(PERSONS, len(pooled)),
            reconstructions={"inverse": 0.5 + Z @ loadings.T},
        )
        found = ColludingSites().attack(view, rng).candidates
        own = [np.mean(links == np.arange(PERSONS)) for links in found.values()]
        linked = link_with_moments(X, Z[:PERSONS], loadings, b, set_aside)
        more = [np.mean(links == np.arange(PERSONS)) for links in linked]
        rates.append((max(own), max(more)))
    without, with_moments = np.mean(rates, axis=0)
    assert without > 5 / PERSONS  # the attack works
    assert with_moments <= without
