"""What the projection of the record index that two parties share reveals of one of them.

    python -m studies.record_projection FOLDER

Reads `pendigits_train.csv`, 1,000 digits of it. One party holds the first eight columns, the other
one the last eight. Printed are, for several numbers K of published mixtures and 20 matrices: the
relative error of the lengths of columns by the length of the projected column, and of a guess that
all columns are as long as the known ones on average; the share of positive bounds of lemma 4.1, and
the mean bound over the true length; the mean bound of lemma 4.2 over the value of the person with
the largest value, all other values being known; the energy that the other party recovers, who knows
the matrix, against a guess of each column's middle.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from ppdm_core.numerics.record_projection import (
    bound_lengths,
    bound_value,
    draw_projection,
    estimate_lengths,
    recover_columns,
)

N, MATRICES, SEED = 1000, 20, 41
MIXTURES = (20, 100, 500)


def read_parties(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns of both parties, scaled to 0 and 1."""
    import pandas as pd

    frame = pd.read_csv(folder / "pendigits_train.csv").drop(columns="label")
    X = frame.to_numpy(dtype=np.float64)[:N] / 100
    return X[:, :8], X[:, 8:]


def measure(first: np.ndarray, second: np.ndarray, K: int) -> list[float]:
    """Return the figures of one number of mixtures, averaged over the matrices."""
    true, lengths = np.linalg.norm(first, axis=0), np.linalg.norm(second, axis=0)
    person = int(np.argmax(first.sum(axis=1)))
    value, others = first[person], np.delete(first, person, axis=0)
    found = []
    for draw in range(MATRICES):
        R = draw_projection(K, N, np.random.default_rng([SEED, K, draw]))
        Y = R @ first
        bounds = bound_lengths(Y, R @ second, lengths)
        # Centred, so that the common mean does not count as recovered.
        left = first - 0.5 - recover_columns(Y - R @ np.full_like(first, 0.5), R)
        found.append(
            [
                np.mean(np.abs(estimate_lengths(Y) / true - 1)),
                np.mean(np.abs(lengths.mean() / true - 1)),
                np.mean(bounds > 0),
                np.mean(bounds / true),
                np.mean(bound_value(bounds, others) / value),
                1 - (left**2).sum() / ((first - 0.5) ** 2).sum(),
            ]
        )
    return [float(each) for each in np.mean(found, axis=0)]


def main(folder: Path) -> None:
    """Print one line for each number of mixtures."""
    first, second = read_parties(folder)
    print("| K | error of lengths | guess | positive bounds | bound | value bound | recovered |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for K in MIXTURES:
        print(f"| {K} | " + " | ".join(f"{each:.3f}" for each in measure(first, second, K)) + " |")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
