"""What metrics of a release have in common."""

from __future__ import annotations

import sys
from abc import ABC
from typing import ClassVar, Literal

import numpy as np

from ppdm_core.metrics._comparison import Compared, Measured
from ppdm_core.metrics._metric import Better, Kind, ReleaseMetric, check_finite, percent
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.errors import Defect, NotApplicable


class OfRelease(ReleaseMetric, ABC):
    """Utility, the more the better, in shares: what most of them are."""

    kind: ClassVar[Kind] = "utility"
    better: ClassVar[Better] = "up"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    goal: ClassVar[Literal["release"]] = "release"
    most: ClassVar[int] = sys.maxsize
    is_rate: ClassVar[bool] = False
    gateable: ClassVar[bool] = True
    needs_label: ClassVar[bool] = False


def on_original(value: float | None) -> str:
    return "" if value is None else f", {percent(value)} on the original table"


def mean_of(units: Ints, values: Floats) -> Measured:
    """A mean of one value for each of these records."""

    def on(keep: np.ndarray) -> float:
        kept = keep[units]
        return float(np.mean(values[kept])) if kept.any() else float("nan")

    return Measured(float(np.mean(values)), on)


def some_of(n: int, most: int, rng: np.random.Generator) -> Ints:
    """All, or a random sample of so many, in their order."""
    return np.arange(n) if n <= most else np.sort(rng.choice(n, most, replace=False))


def check_compared(name: str, compared: Compared) -> None:
    """A score of NaN or of misaligned rows must never reach a gate."""
    X, Y, source = compared.X, compared.Y, compared.source
    is_aligned = len(Y) == (len(X) if source is None else len(source))
    if not len(X) or not len(Y) or not is_aligned or len(compared.label) != len(X):
        raise Defect(f"{name} got tables of shape {X.shape} and {Y.shape}.")
    check_finite(name, X)
    check_finite(name, Y)


def check_one_row_each(name: str, compared: Compared) -> None:
    check_compared(name, compared)
    if compared.source is not None:
        raise NotApplicable(f"{name} needs one released row for each record.")


def check_same_columns(name: str, compared: Compared) -> None:
    check_compared(name, compared)
    if not compared.has_same_columns:
        raise NotApplicable(f"{name} needs a release with the columns of the original.")


def check_labelled(name: str, compared: Compared) -> None:
    check_compared(name, compared)
    if len(compared.X) < 2 or bool((compared.label < 0).any()):
        raise NotApplicable(f"{name} needs two records or more, each with a label.")
