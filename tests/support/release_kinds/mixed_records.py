"""Records that are mixed with each other, so that a row belongs to nobody, until it is undone."""

from __future__ import annotations

import numpy as np
from scipy.fft import dct, idct

from ppdm_core.model.arrays import Floats
from tests.support.release_kinds.kinds import Family, Kind
from tests.support.release_kinds.proofs import Proof, View

MIXED: Family = "mixed records"
SHIFT = 17  # rows between a column and the next one
SLIGHT = 0.02  # noise in deviations


def transform_rows(X: Floats, rng: np.random.Generator) -> Floats:
    """Replace each column by its cosine transform over all rows."""
    return np.asarray(dct(X, axis=0, norm="ortho"))


def undo_transform(view: View) -> Floats:
    return np.asarray(idct(view.Y, axis=0, norm="ortho"))


def rotate_pairs(X: Floats, rng: np.random.Generator) -> Floats:
    """Replace each two records by their sum and their difference, of the same length."""
    half = len(X) // 2
    first, second, rest = X[:half], X[half : 2 * half], X[2 * half :]
    return np.vstack([first + second, first - second, np.sqrt(2.0) * rest]) / np.sqrt(2.0)


def undo_pairs(view: View) -> Floats:
    return rotate_pairs(view.Y, np.random.default_rng())  # it is its own inverse


def move_columns(X: Floats, rng: np.random.Generator) -> Floats:
    """Move each column by another number of rows, with slight noise."""
    moved = [np.roll(x, SHIFT * (j + 1)) for j, x in enumerate(X.T)]
    return np.column_stack(moved) + SLIGHT * X.std(axis=0) * rng.standard_normal(X.shape)


def undo_moves(view: View) -> Floats:
    return np.column_stack([np.roll(y, -SHIFT * (j + 1)) for j, y in enumerate(view.Y.T)])


MIXED_RECORDS = (
    Kind(
        "cosine transform along the rows",
        MIXED,
        transform_rows,
        Proof("full records", "recover", undo_transform),
    ),
    Kind(
        "sums and differences of two records",
        MIXED,
        rotate_pairs,
        Proof("full records", "recover", undo_pairs),
    ),
    Kind(
        "columns moved along the rows",
        MIXED,
        move_columns,
        Proof("full records", "recover", undo_moves),
    ),
)
