"""Log odds that a person is in a release whose map and noise distribution are public."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppdm_core.attacks._row_density import log_normal
from ppdm_core.model.arrays import Codes, Floats
from ppdm_core.model.release import Response
from ppdm_core.numerics.noise_distributions import NoiseDistribution, StudentT

Anys = NDArray[np.floating[Any]]

_NORMAL_WEIGHT = 0.1  # weight of a normal distribution in the mixture behind a row
_MAX_REFERENCE_RECORDS = 2_000  # of a class
_CACHED_PAIRS = 2**17  # at a time: fits the processor cache
_MAX_EXPONENT = 600.0  # of a product of factors
_FACTORS_PER_LOGARITHM = 32  # whose product is taken first


def pairwise_log_density(distribution: NoiseDistribution, A: Floats, B: Floats) -> Floats:
    """Return the log density of the differences between all rows of A and of B, in scales."""
    from scipy.spatial.distance import cdist

    s = A.shape[1]
    if distribution.name == "laplace":
        return np.asarray(-cdist(A, B, "cityblock") - s * math.log(2.0))
    if distribution.name == "normal":
        return np.asarray(-0.5 * cdist(A, B, "sqeuclidean") - 0.5 * s * math.log(2 * math.pi))
    if distribution.name == "uniform":
        inside = cdist(A, B, "chebyshev") <= 1.0 + 1e-2  # and what the grid may add
        return np.where(inside, -s * math.log(2.0), -np.inf)
    if isinstance(distribution, StudentT):
        nu = distribution.nu
        top = math.lgamma((nu + 1) / 2) - math.lgamma(nu / 2) - 0.5 * math.log(nu * math.pi)
        return np.asarray(s * top - (nu + 1) / 2 * _log_product(A, B, lambda u: 1.0 + u**2 / nu))
    # Single precision makes the exponential several times as fast; factors are 1 to 2.
    single = A.astype(np.float32), B.astype(np.float32)
    mixed = _log_product(*single, lambda u: 1.0 + np.exp(-np.abs(u)))
    return np.asarray(-cdist(A, B, "cityblock") - 2.0 * mixed)


def compute_tile_density(distribution: NoiseDistribution, A: Floats, B: Floats) -> Floats:
    """Return the same as ``pairwise_log_density`` for small tables, several times as fast.

    Of Student's and logistic noise, one product of few operations for each component is taken.
    With u = a - b, the logistic density exp(-u) / (1 + exp(-u))^2 needs no exponential of a pair:
    exp(a - b) = exp(a) exp(-b). Sums and rounding differ.
    """
    is_student = isinstance(distribution, StudentT)
    if not is_student and distribution.name != "logistic":
        return pairwise_log_density(distribution, A, B)
    s = A.shape[1]
    if is_student:
        assert isinstance(distribution, StudentT)
        nu = distribution.nu
        top = math.lgamma((nu + 1) / 2) - math.lgamma(nu / 2) - 0.5 * math.log(nu * math.pi)
        A, B = A / math.sqrt(nu), B / math.sqrt(nu)
        largest = 1.0 + float(np.abs(A).max(initial=0.0) + np.abs(B).max(initial=0.0)) ** 2
        return np.asarray(s * top - (nu + 1) / 2 * _sum_logs(A, B, _add_squares, math.log(largest)))
    largest = float(np.abs(A).max(initial=0.0) + np.abs(B).max(initial=0.0))
    if largest > _MAX_EXPONENT:
        return pairwise_log_density(distribution, A, B)
    total = -2.0 * _sum_logs(np.exp(A), np.exp(-B), _add_product, largest + 1.0)
    total += A.sum(axis=1)[:, None]
    total -= B.sum(axis=1)
    return total


def _add_squares(a: Floats, b: Floats, out: Floats) -> None:
    """Compute 1 + (a - b)^2 for all pairs."""
    np.subtract(a[:, None], b, out=out)
    np.multiply(out, out, out=out)
    np.add(out, 1.0, out=out)


def _add_product(a: Floats, b: Floats, out: Floats) -> None:
    """Compute 1 + a b for all pairs."""
    np.multiply(a[:, None], b, out=out)
    np.add(out, 1.0, out=out)


def _sum_logs(
    A: Floats, B: Floats, factor: Callable[[Floats, Floats, Floats], None], largest: float
) -> Floats:
    """Return the sum over columns of the log of a factor, whose log is at most ``largest``."""
    total = np.zeros((len(A), len(B)))
    size = max(1, _CACHED_PAIRS // (4 * max(len(B), 1)))
    held, scratch = np.empty((2, size, len(B)))
    each = max(1, int(_MAX_EXPONENT // max(largest, 1e-9)))  # factors whose product is finite
    columns = list(zip(A.T.copy(), B.T.copy(), strict=True))
    for start in range(0, len(A), size):
        part = slice(start, min(start + size, len(A)))
        product, one = held[: part.stop - start], scratch[: part.stop - start]
        product.fill(1.0)
        for i, (a, b) in enumerate(columns, start=1):
            factor(a[part], b, one)
            np.multiply(product, one, out=product)
            if i % each == 0 or i == len(columns):
                total[part] += np.log(product, out=one)
                product.fill(1.0)
    return total


def _log_product(A: Anys, B: Anys, factor: Callable[[Anys], Anys]) -> Floats:
    """Return the log of the product over columns, with few of the slow logarithms."""
    total = np.zeros((len(A), len(B)))
    for start in range(0, A.shape[1], _FACTORS_PER_LOGARITHM):
        product = np.ones(total.shape, dtype=A.dtype)
        for a, b in zip(
            A.T[start : start + _FACTORS_PER_LOGARITHM],
            B.T[start : start + _FACTORS_PER_LOGARITHM],
            strict=True,
        ):
            product *= factor(a[:, None] - b[None, :])
        total += np.log(product)
    return total


def encode_matches(codes: Codes, responses: tuple[Response, ...]) -> tuple[Floats, Floats]:
    """Return codes as columns of 0 and 1, and these times the log likelihood of a match."""
    marks, gains = [np.zeros((len(codes), 0))], [np.zeros(0)]
    for column, response in zip(codes.T, responses, strict=True):
        places = column[:, None] + int(response.column.missing)
        marks.append((places == np.arange(response.column.k)).astype(np.float64))
        gains.append(np.full(response.column.k, math.log(response.gamma)))
    marked = np.hstack(marks)
    return marked, marked * np.concatenate(gains)


def compute_noise_odds(
    distribution: NoiseDistribution,
    Z: Floats,
    T: Floats,
    R: Floats,
    cells: tuple[Codes, Codes, Codes] | None = None,
    responses: tuple[Response, ...] = (),
) -> Floats:
    """Return the log odds that a person of T is behind one of the rows Z, (t,).

    All tables are in scales of the noise. The odds are the mean over rows of f(z | x) / g(z): g is
    the density of the row under the other persons of T and R, and a normal distribution. ``cells``
    holds the responses of the rows and the categories of T and of R.
    """
    some = slice(None, None, -(-len(R) // _MAX_REFERENCE_RECORDS) or 1)
    t, records = len(T), np.vstack([T, R[some]])
    none = tuple(np.zeros((len(part), 0), dtype=np.int32) for part in (Z, T, R))
    row_codes, target_codes, reference_codes = cells or none
    row_marks, _ = encode_matches(row_codes, responses)
    _, gains = encode_matches(np.vstack([target_codes, reference_codes[some]]), responses)
    # Likelihoods are relative to responses without a match, so the background must be, too.
    rare = -sum(math.log((1.0 - r.keep_probability) / max(r.column.k - 1, 1)) for r in responses)
    plain = log_normal(Z) + math.log(_NORMAL_WEIGHT) + rare
    plain += row_marks @ np.log(np.maximum(row_marks.mean(axis=0), 1e-300))
    total = np.zeros(t)
    each = math.log((1.0 - _NORMAL_WEIGHT) / max(len(records) - 1, 1))
    size = max(1, _CACHED_PAIRS // len(records))
    for rows in (slice(i, i + size) for i in range(0, len(Z), size)):
        L = pairwise_log_density(distribution, Z[rows], records) + row_marks[rows] @ gains.T
        top = np.maximum(L.max(axis=1), plain[rows])
        F = np.exp(L - top[:, None] + each)
        g = F.sum(axis=1) + np.exp(plain[rows] - top)
        own = F[:, :t]
        total += (own / np.maximum(g[:, None] - own, 1e-12 * g[:, None])).sum(axis=0)
    ratio = total / math.exp(each) / max(len(Z), 1)
    return np.asarray(np.log(np.maximum(ratio, 1e-300)))
