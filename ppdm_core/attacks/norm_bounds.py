"""Estimate lengths of records: a projection keeps inner products on average."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ppdm_core.attacks._attack import Attack
from ppdm_core.attacks._map_fitting import ridge
from ppdm_core.attacks._needs import check_needs
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.attacker import AttackerView, Estimate, Goal, KnownRows
from ppdm_core.model.release import PublicParameters

BOUND_STANDARD_ERRORS = 2.0  # subtracted from a bound


@dataclass(frozen=True)
class NormBounds(Attack):
    """An attacker who knows how the projection is normalised estimates the length of each record.

    Candidates:
    ``direct`` is the length of the released row over the published factor;
    ``calibrated`` takes the factor from known records instead, which see the very matrix that was
    used: from their rows, or else from the mean square of known records or of a sample;
    ``regression`` learns the square of the length from row and length of known pairs;
    ``lower_bound`` is the largest of <y_a, y_c> / |x_c| over the known pairs c, less two standard
    errors, and at least 0: what the Cauchy-Schwarz inequality says.

    Lengths of known records are returned as known. Notes: ``positive_bounds``, the share of the
    other rows with a bound above 0, and ``bounds_over_direct``, the mean of bound over estimate.

    References: Tan, Ng (2007), lemmas 4.1 and 4.2, restated for rows with the variance over the
    matrix, because they hold on average only. The direct estimate is ours, two-sided and closer.
    """

    name: ClassVar[str] = "norm_bounds"
    story: ClassVar[str] = (
        "An attacker with {k} known records estimates the lengths of the other records."
    )
    title: ClassVar[str] = "Estimates the length of records"
    goal: ClassVar[Goal] = "norms"
    needs: ClassVar[frozenset[str]] = frozenset({"public.lengths"})
    must_notice: ClassVar[Mapping[str, float]] = {"projection": 0.85}

    def attack(self, view: AttackerView, rng: np.random.Generator) -> Estimate:
        check_needs(self, view)
        ratio, k = read_length_ratio(view.public)
        lengths = np.linalg.norm(view.Y, axis=1)  # (n,)
        found = {"direct": lengths / np.sqrt(ratio)}
        pairs = view.known
        if pairs is None or len(pairs.rows) == 0:
            found.update(calibrate_by_mean(lengths, view))
            return Estimate(found)
        norms = np.linalg.norm(pairs.X, axis=1)
        found["calibrated"] = lengths * _fit_factor(norms, lengths[pairs.rows], ratio)
        found["regression"] = predict_by_regression(view.Y, pairs.rows, norms)
        d = len(view.schema.numeric)
        bounds = compute_lower_bounds(view.Y, pairs, found["direct"], ratio, k, d)
        found["lower_bound"] = np.maximum(bounds, 0.0)
        return Estimate(
            _insert_known(found, pairs, norms), notes=_describe_bounds(bounds, found, pairs)
        )


def read_length_ratio(public: PublicParameters) -> tuple[float, float]:
    """Return the mean of |y|^2 / |x|^2 over the matrices, and the number of random directions."""
    mean_ratio = public.facts.get("squared_distance_ratio_mean")
    if mean_ratio is None:
        return 1.0, np.inf  # distances are preserved: exact
    return float(mean_ratio), float(public.facts.get("components", 1.0))


def norm_bound(product: ArrayLike, norm: ArrayLike, error: ArrayLike = 0.0) -> Floats:
    """Return the bound of lemma 4.1: |a| >= <y_a, y_c> / |c|, less the error of the product.

    It may be negative.
    """
    product, norm, error = (np.asarray(part, dtype=np.float64) for part in (product, norm, error))
    safe = np.where(norm > 0, norm, 1.0)
    return np.asarray(np.where(norm > 0, (product - error) / safe, 0.0))


def product_deviation(a: Floats, c: Floats, product: Floats, d: int, k: float) -> Floats:
    """Return the standard deviation of <y_a, y_c> over the matrices; its mean is ``product``.

    ``product`` is <a, c>; ``a`` and ``c`` are lengths. The k directions are uniform and of equal
    length, so that E (r.a)^2 (r.c)^2 = (|a|^2 |c|^2 + 2 <a, c>^2) / (d (d + 2)) for each, if r has
    length 1.
    """
    fourth = d / (d + 2) * (a**2 * c**2 + 2 * product**2)
    return np.asarray(np.sqrt(np.maximum(fourth - product**2, 0.0) / k))


def compute_lower_bounds(
    Y: Floats, known: KnownRows, direct: Floats, ratio: float, k: float, d: int
) -> Floats:
    """Return the best bound of each row over the known pairs, (n,)."""
    norms = np.linalg.norm(known.X, axis=1)  # (c,)
    products = Y @ Y[known.rows].T / ratio  # (n, c)
    deviation = product_deviation(direct[:, None], norms, products, d, k)
    return np.asarray(norm_bound(products, norms, BOUND_STANDARD_ERRORS * deviation).max(axis=1))


def calibrate_by_mean(lengths: Floats, view: AttackerView) -> dict[str, Floats]:
    """Return lengths scaled to the mean square of known records or a sample.

    These are as long on average as the records behind the release.
    """
    held = view.records if view.records is not None and len(view.records) else view.sample
    if held is None or len(held) == 0:
        return {}
    seen = float(np.sqrt(np.mean(lengths**2)))
    mean = float(np.sqrt(np.mean(np.sum(held**2, axis=1))))
    return {"calibrated": lengths * (mean / seen) if seen > 0 else np.zeros_like(lengths)}


def predict_by_regression(Y: Floats, rows: Ints, norms: Floats) -> Floats:
    """Predict lengths by ridge regression on the released values and their squared length."""
    features = np.column_stack([Y, np.sum(Y**2, axis=1)])
    unit = np.maximum(np.std(features, axis=0), 1e-12)
    features = features / unit
    squares = ridge(features[rows], (norms**2)[:, None], features)[:, 0]
    return np.asarray(np.sqrt(np.maximum(squares, 0.0)))


def _fit_factor(norms: Floats, lengths: Floats, ratio: float) -> float:
    """Return the least squares factor from released to true lengths."""
    square = float(lengths @ lengths)
    return float(norms @ lengths) / square if square > 0 else 1.0 / np.sqrt(ratio)


def _insert_known(found: dict[str, Floats], known: KnownRows, norms: Floats) -> dict[str, Floats]:
    """Replace the estimates of known records by their true lengths."""
    for estimate in found.values():
        estimate[known.rows] = norms
    return found


def _describe_bounds(
    bounds: Floats, found: dict[str, Floats], known: KnownRows
) -> dict[str, float]:
    """Return the notes on the bounds of unknown records."""
    others = np.setdiff1d(np.arange(len(bounds)), known.rows)
    if len(others) == 0:
        return {}
    direct = found["direct"][others]
    share = np.divide(bounds[others], direct, out=np.zeros_like(direct), where=direct > 0)
    return {
        "positive_bounds": float(np.mean(bounds[others] > 0)),
        "bounds_over_direct": float(np.mean(np.maximum(share, 0.0))),
    }
