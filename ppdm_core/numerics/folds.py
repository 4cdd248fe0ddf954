"""Folds of cross-validation."""

from __future__ import annotations

import numpy as np

from ppdm_core.model.arrays import Codes, Ints


def assign_folds(codes: Ints | Codes, folds: int, rng: np.random.Generator) -> Ints:
    """Return the fold of each row: the shuffled rows of a class, in turn."""
    order = np.lexsort((rng.random(len(codes)), codes))
    fold = np.empty(len(codes), dtype=np.int64)
    fold[order] = np.arange(len(codes)) % min(folds, len(codes))
    return fold
