"""The projection of the record index that two parties share, and what it reveals.

Both parties hold columns of the same N persons. They draw one secret matrix R of K rows with
E[R'R] = I, and publish Y = R X: K mixtures of all records in place of N records. Inner products of
columns, of both parties too, are correct on average.

A recipient does not know R. Lemma 4.1 of Tan and Ng bounds the length of a column from below, given
one column with its length; lemma 4.2 turns it into a bound of one person's value, given the values
of all others. Both hold on average over R, so that standard errors are subtracted. The length of
the projected column itself estimates the same length from both sides, and closer. The other party
knows R: it recovers the part of each column in the span of R's rows, and a value exactly if it
knows those of all other persons.

References: Tan, Ng (2007), lemmas 4.1 and 4.2.
"""

from __future__ import annotations

import math

import numpy as np

from ppdm_core.model.arrays import Bools, Floats

BOUND_STANDARD_ERRORS = 2.0  # subtracted from a bound


def draw_projection(K: int, N: int, rng: np.random.Generator) -> Floats:
    """Draw the matrix that both parties use, (K, N)."""
    return np.asarray(rng.standard_normal((K, N)) / math.sqrt(K))


def estimate_lengths(Y: Floats) -> Floats:
    """Return the lengths of all columns; the relative standard error is about 1 / sqrt(2 K)."""
    return np.asarray(np.linalg.norm(Y, axis=0))


def bound_lengths(Y: Floats, known: Floats, lengths: Floats) -> Floats:
    """Return lower bounds of the lengths of columns, (d,), the best over some known columns.

    ``Y`` and ``known`` are projected columns, (K, d) and (K, c), and ``lengths`` those of the known
    columns before. A bound may be 0: the inequality says something for a positive product only.
    """
    products = Y.T @ known  # (d, c)
    size = estimate_lengths(Y)[:, None] * lengths
    errors = np.sqrt((size**2 + products**2) / len(Y))  # of a product, for a Gaussian matrix
    safe = np.where(lengths > 0, lengths, 1.0)
    bounds = np.where(lengths > 0, (products - BOUND_STANDARD_ERRORS * errors) / safe, 0.0)
    return np.asarray(np.maximum(bounds.max(axis=1), 0.0))


def bound_value(length: Floats, others: Floats) -> Floats:
    """Return the least absolute value of one person in each column, (d,).

    ``length`` bounds the length of the column from below, and ``others`` are the values of all
    other persons, (N - 1, d).
    """
    left = length**2 - (others**2).sum(axis=0)
    return np.asarray(np.sqrt(np.maximum(left, 0.0)))


def recover_columns(Y: Floats, R: Floats) -> Floats:
    """Return the shortest columns that the other party, which knows ``R``, finds, (N, d)."""
    return np.asarray(np.linalg.lstsq(R, Y, rcond=None)[0])


def recover_unknown(Y: Floats, R: Floats, X: Floats, is_known: Bools) -> Floats:
    """Return the columns if the other party also knows some records.

    What the known ones contribute is subtracted. The result is exact with at most K unknown ones.
    """
    found = X.copy()
    left = Y - R[:, is_known] @ X[is_known]
    found[~is_known] = recover_columns(left, R[:, ~is_known])
    return found
