"""Checks and small computations that metrics share."""

from __future__ import annotations

import numpy as np

from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.errors import Defect


def average(values: Floats) -> float:
    """Return the mean of the values that are not NaN."""
    return float(np.mean(values[~np.isnan(values)]))


def percent(share: float) -> str:
    """Return a share as a percentage with one decimal."""
    return f"{100 * share:.1f} %"


def check_tables(name: str, X: Floats, other: Floats) -> None:
    """Check shapes and finite values: no score of NaN or of misaligned rows may reach a gate."""
    if len(X) == 0 or X.shape != other.shape:
        raise Defect(f"{name} got tables of shape {X.shape} and {other.shape}.")
    check_finite(name, X)
    check_finite(name, other)


def check_finite(name: str, values: Floats) -> None:
    """Check that no value is NaN or infinite."""
    bad = int(np.sum(~np.isfinite(values)))
    if bad:
        raise Defect(f"{name} got {bad} values that are not finite.")


def check_links(name: str, link: Ints, truth: Ints) -> None:
    """Check that there is one integer link, and one true record, for each target."""
    if link.shape != truth.shape or link.ndim != 1 or len(link) == 0:
        raise Defect(f"{name} got links of shape {link.shape} for {truth.shape} targets.")
    if not np.issubdtype(link.dtype, np.integer) or bool((truth < 0).any()):
        raise Defect(f"{name} needs integers as links, and a record for each target.")
