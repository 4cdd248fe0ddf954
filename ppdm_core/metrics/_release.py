"""Checks and helpers of the metrics of a release."""

from __future__ import annotations

import numpy as np

from ppdm_core.metrics._comparison import Measurement, ReleaseComparison
from ppdm_core.metrics._values import check_finite
from ppdm_core.model.arrays import Bools, Floats, Ints
from ppdm_core.model.errors import Defect, NotApplicable
from ppdm_core.model.reasons import Reason


def measure_mean(units: Ints, values: Floats) -> Measurement:
    """Return the mean of one value for each of these records."""

    def recompute(keep: Bools) -> float:
        mask = keep[units]
        return float(np.mean(values[mask])) if mask.any() else float("nan")

    return Measurement(float(np.mean(values)), recompute, each=(units, values))


def sample_indices(n: int, limit: int, rng: np.random.Generator) -> Ints:
    """Return all of n places, or a random sample of ``limit``, in ascending order."""
    return np.arange(n) if n <= limit else np.sort(rng.choice(n, limit, replace=False))


def check_comparison(name: str, comparison: ReleaseComparison) -> None:
    """Check shapes and finite values: no score of NaN or of misaligned rows may reach a gate."""
    X, Y, source = comparison.X, comparison.Y, comparison.source
    is_aligned = len(Y) == (len(X) if source is None else len(source))
    if not len(X) or not len(Y) or not is_aligned or len(comparison.label) != len(X):
        raise Defect(f"{name} got tables of shape {X.shape} and {Y.shape}.")
    check_finite(name, X)
    check_finite(name, Y)


def check_one_row_each(name: str, comparison: ReleaseComparison) -> None:
    """Check that each record has one released row."""
    check_comparison(name, comparison)
    if comparison.source is not None:
        raise NotApplicable(f"{name} needs one released row for each record.")


def check_same_columns(name: str, comparison: ReleaseComparison) -> None:
    """Check that the release has the original columns."""
    check_comparison(name, comparison)
    if not comparison.has_same_columns:
        raise NotApplicable(
            f"{name} needs a release with the columns of the original.",
            reason=Reason.NO_COMMON_COLUMN,
        )


def check_rows_of_records(name: str, comparison: ReleaseComparison) -> None:
    """Check that the release has the original columns, and that the record of each row is known."""
    check_same_columns(name, comparison)
    if bool((comparison.records < 0).any()):
        raise NotApplicable(
            f"{name} needs to know which record each row was made from.",
            reason=Reason.NO_ALIGNMENT,
        )


def check_labels(name: str, comparison: ReleaseComparison) -> None:
    """Check that there are two labelled records or more."""
    check_comparison(name, comparison)
    if len(comparison.X) < 2 or bool((comparison.label < 0).any()):
        raise NotApplicable(f"{name} needs two records or more, each with a label.")
