"""Base class and helpers of the metrics of a release."""

from __future__ import annotations

import sys
from abc import ABC
from typing import ClassVar, Literal

import numpy as np

from ppdm_core.metrics._comparison import Measurement, ReleaseComparison
from ppdm_core.metrics._metric import Better, Kind, ReleaseMetric, check_finite, percent
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.errors import Defect, NotApplicable


class ReleaseMetricBase(ReleaseMetric, ABC):
    """A metric of a release, with the defaults of most: utility, better up, between 0 and 1."""

    kind: ClassVar[Kind] = "utility"
    better: ClassVar[Better] = "up"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    goal: ClassVar[Literal["release"]] = "release"
    max_records: ClassVar[int] = sys.maxsize
    is_rate: ClassVar[bool] = False
    gateable: ClassVar[bool] = True
    needs_label: ClassVar[bool] = False


def format_original(value: float | None) -> str:
    """Return the part of a sentence that states the value on the original table."""
    return "" if value is None else f", {percent(value)} on the original table"


def measure_mean(units: Ints, values: Floats) -> Measurement:
    """Return the mean of one value for each of these records."""

    def recompute(keep: np.ndarray) -> float:
        mask = keep[units]
        return float(np.mean(values[mask])) if mask.any() else float("nan")

    return Measurement(float(np.mean(values)), recompute)


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
        raise NotApplicable(f"{name} needs a release with the columns of the original.")


def check_labels(name: str, comparison: ReleaseComparison) -> None:
    """Check that there are two labelled records or more."""
    check_comparison(name, comparison)
    if len(comparison.X) < 2 or bool((comparison.label < 0).any()):
        raise NotApplicable(f"{name} needs two records or more, each with a label.")
