from __future__ import annotations

import numpy as np
import pytest

from ppdm_core.attacks.known_pairs import find_rotation
from ppdm_core.model.attacker import AttackerView, KnownRows
from ppdm_core.model.errors import BadInput
from ppdm_core.numerics.noise import Noise
from ppdm_core.sanitizers.random_rotation import STEP, RandomRotation, random_orthogonal
from tests.support.tables import (
    KEY,
    fit_sanitizer,
    make_schema,
    make_table,
    read_cells,
    run_sanitizer,
    scale_rows,
)


def solve_matrix(key: bytes, d: int = 5) -> np.ndarray:
    """Return the secret matrix, from the originals and their images."""
    rows = make_table(50, d)
    sanitizer = RandomRotation()
    fitted = fit_sanitizer(sanitizer, rows)
    X = read_cells(scale_rows(rows, fitted))
    Y = read_cells(run_sanitizer(sanitizer, rows, key, fitted).rows)
    return np.linalg.lstsq(X, Y, rcond=None)[0].T


@pytest.mark.parametrize("scale", ["minmax", "zscore", "none"])
def test_sanitize_preserves_distances_and_lengths(scale):
    rows = make_table(80)
    sanitizer = RandomRotation(scale=scale)
    fitted = fit_sanitizer(sanitizer, rows)
    X = read_cells(scale_rows(rows, fitted))
    Y = read_cells(run_sanitizer(sanitizer, rows, fitted=fitted).rows)
    D, E = (np.linalg.norm(A[:, None] - A[None], axis=2) for A in (X, Y))
    np.testing.assert_allclose(E, D, atol=1e-8)
    np.testing.assert_allclose(np.linalg.norm(Y, axis=1), np.linalg.norm(X, axis=1), atol=1e-8)
    assert not np.allclose(Y, X, atol=0.05)


def test_sanitize_applies_one_orthogonal_matrix():
    M = solve_matrix(KEY)
    np.testing.assert_allclose(M @ M.T, np.eye(5), atol=1e-8)


def test_sanitize_other_key_other_matrix():
    assert np.array_equal(solve_matrix(KEY), solve_matrix(KEY))
    assert not np.allclose(solve_matrix(KEY), solve_matrix(KEY[::-1]), atol=0.01)


def test_sanitize_other_scaling_other_matrix():
    rows = make_table(50)
    outputs = [
        read_cells(run_sanitizer(RandomRotation(scale=s), rows).rows) for s in ("minmax", "none")
    ]
    fitted = fit_sanitizer(RandomRotation(), rows)
    X = read_cells(scale_rows(rows, fitted))
    M = np.linalg.lstsq(X, outputs[0], rcond=None)[0].T
    N = np.linalg.lstsq(rows.whole.X, outputs[1], rcond=None)[0].T
    assert not np.allclose(M, N, atol=0.01)


def test_random_orthogonal_is_haar_distributed():
    # Under Haar's measure E trace = 0, E trace^2 = 1, entries have variance 1/d, both signs of det.
    n, d = 3000, 4
    matrices = np.array(
        [random_orthogonal(d, Noise(KEY).generator("haar", str(i))) for i in range(n)]
    )
    traces = np.trace(matrices, axis1=1, axis2=2)
    assert abs(traces.mean()) < 4 / np.sqrt(n)
    assert traces.var() == pytest.approx(1.0, abs=0.12)
    np.testing.assert_allclose(matrices.mean(axis=0), 0.0, atol=5 * np.sqrt(1 / (d * n)))
    np.testing.assert_allclose(matrices.var(axis=0), 1 / d, rtol=0.15)
    share = np.mean(np.linalg.det(matrices) > 0)
    assert abs(share - 0.5) < 4 * np.sqrt(0.25 / n)


def test_random_orthogonal_gives_both_orientations():
    signs = {round(float(np.linalg.det(solve_matrix(bytes([i]) * 32, 3)))) for i in range(20)}
    assert signs == {-1, 1}


def test_sanitize_outputs_rounded_inside_declared_bounds():
    released = run_sanitizer(RandomRotation(), make_table(300))
    Y = read_cells(released.rows)
    assert np.array_equal(Y / STEP, np.rint(Y / STEP))
    assert not np.any(np.signbit(Y) & (Y == 0))
    assert (released.rows.schema.lows <= Y).all()
    assert (released.rows.schema.highs >= Y).all()


def test_public_parameters_hold_no_matrix():
    public = run_sanitizer(RandomRotation(), make_table(50)).public
    assert public.preserves_distances
    assert public.loadings is None
    assert public.centre is None
    assert dict(public.facts) == {}


def test_guarantee_is_empirical():
    rows = make_table(50)
    fitted = fit_sanitizer(RandomRotation(), rows)
    promise = RandomRotation().guarantee(rows.schema, fitted)
    assert promise.kind == "empirical"
    assert np.isinf([promise.ln_component, promise.ln_attribute, promise.ln_record]).all()


def translate(n: int = 80, key: bytes = KEY) -> tuple[np.ndarray, np.ndarray]:
    rows, sanitizer = make_table(n), RandomRotation(translation=True)
    fitted = fit_sanitizer(sanitizer, rows)
    return read_cells(scale_rows(rows, fitted)), read_cells(
        run_sanitizer(sanitizer, rows, key, fitted).rows
    )


def test_translation_preserves_distances_and_hides_lengths():
    X, Y = translate()
    D, E = (np.linalg.norm(A[:, None] - A[None], axis=2) for A in (X, Y))
    np.testing.assert_allclose(E, D, atol=1e-8)
    lengths = (np.linalg.norm(A, axis=1) for A in (X, Y))
    assert abs(np.corrcoef(*lengths)[0, 1]) < 0.99
    assert np.array_equal(Y / STEP, np.rint(Y / STEP))


def test_translation_is_one_offset_per_key():
    offsets = []
    for key in (KEY, KEY, KEY[::-1]):
        X, Y = translate(key=key)
        homogeneous = np.column_stack([X, np.ones(len(X))])
        solution, *_ = np.linalg.lstsq(homogeneous, Y, rcond=None)
        np.testing.assert_allclose(homogeneous @ solution, Y, atol=1e-8)
        offsets.append(solution[-1])
    assert np.array_equal(offsets[0], offsets[1])
    assert np.linalg.norm(offsets[0] - offsets[2]) > 0.1
    assert np.abs(offsets).max() <= np.sqrt(5)


def test_translation_outputs_inside_declared_bounds_and_published():
    released = run_sanitizer(RandomRotation(translation=True), make_table(300))
    Y = read_cells(released.rows)
    assert (released.rows.schema.lows <= Y).all()
    assert (released.rows.schema.highs >= Y).all()
    assert released.public.preserves_distances
    assert released.public.facts == {"translation": "secret"}


def test_known_pairs_one_more_record_removes_translation():
    X, Y = translate(40)
    public = run_sanitizer(RandomRotation(translation=True), make_table(40)).public
    label = np.zeros(40, dtype=np.int32)
    known = KnownRows(X[:6], np.arange(6))
    frame = find_rotation(AttackerView(Y, label, public, make_schema(), 0.1, known), known)
    assert frame is not None
    assert frame.freedom == 0
    np.testing.assert_allclose(frame.x0 + (Y - frame.y0) @ frame.B @ frame.A.T, X, atol=1e-6)


def test_fingerprint_translation_differs():
    assert RandomRotation().mechanism(make_schema(), {}) == []
    fingerprints = {
        RandomRotation(translation=t).fingerprint(make_schema(), {}) for t in (False, True)
    }
    assert len(fingerprints) == 2


def test_translation_invalid_raises():
    with pytest.raises(BadInput, match="'translation' parameter of RandomRotation"):
        RandomRotation(translation="yes")


@pytest.mark.parametrize("translation", [False, True])
def test_leaked_map_gives_released_rows(translation):
    rows = make_table(50)
    sanitizer = RandomRotation(translation=translation)
    fitted = fit_sanitizer(sanitizer, rows)
    X = scale_rows(rows, fitted)
    centre, loadings = sanitizer.leaked(X.schema, Noise(KEY), fitted)
    Y = read_cells(run_sanitizer(sanitizer, rows, KEY, fitted).rows)
    np.testing.assert_allclose((read_cells(X) - centre) @ loadings, Y, atol=STEP)
