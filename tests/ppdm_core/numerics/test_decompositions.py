from __future__ import annotations

import numpy as np
import pytest

from ppdm_core.numerics.decompositions import decompose_singular, decompose_symmetric


def fail(*given: object, **more: object) -> None:
    raise np.linalg.LinAlgError


@pytest.fixture(params=["fast", "safe"])
def algorithm(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "safe":
        monkeypatch.setattr(np.linalg, "eigh", fail)
        monkeypatch.setattr(np.linalg, "svd", fail)


@pytest.mark.usefixtures("algorithm")
def test_decompose_symmetric_either_algorithm_restores_the_matrix() -> None:
    A = np.random.default_rng(1).standard_normal((9, 6))
    values, Q = decompose_symmetric(A.T @ A)
    assert (np.diff(values) >= 0).all()
    assert Q * values @ Q.T == pytest.approx(A.T @ A)


@pytest.mark.usefixtures("algorithm")
def test_decompose_singular_either_algorithm_restores_the_matrix() -> None:
    A = np.random.default_rng(2).standard_normal((9, 6))
    U, S, Vt = decompose_singular(A)
    assert U.shape == (9, 6) and (np.diff(S) <= 0).all()
    assert U * S @ Vt == pytest.approx(A)
