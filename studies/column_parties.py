"""The cosine coefficients that parties with other columns of the same persons keep, and the loss.

    python -m studies.column_parties FOLDER

Reads `pendigits_train.csv` and `pendigits_test.csv`. The 16 columns are split between 2 or 3
parties, at random as in section 4.5 of the DCT-F paper, and in some fixed ways, with b = 0.1 and
p = 0.2. Printed are the kept coefficients; the largest loss of a record at any party (of its own
energy); the true loss of the complete record; the largest ratio of both, each of one record; the
least largest loss at a party with as many coefficients (problem 1 of the paper, exact); and the
rank of one party's part in the kept coefficients: a party with fewer columns than that could be
inverted if its coefficients were not masked.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ppdm_core.sanitizers._joint_selection import (
    JointProgramme,
    PartyBounds,
    choose_jointly,
    choose_least_loss,
)
from ppdm_core.sanitizers.dct_fuzzy import DctFuzzy

SPLITS = 10
B, P = 0.1, 0.2
FIXED_SPLITS = {
    "first and last eight": [[*range(8)], [*range(8, 16)]],
    "x and y": [[*range(0, 16, 2)], [*range(1, 16, 2)]],
    "neighbours": [[*range(6)], [*range(6, 11)], [*range(11, 16)]],
}
WIDTH = 100.0  # of every column: coordinates from 0 to 100


def read_table(folder: Path) -> np.ndarray:
    """Return the 16 coordinates of all digits, scaled by their bounds."""
    import pandas as pd

    parts = [pd.read_csv(folder / f"pendigits_{name}.csv") for name in ("train", "test")]
    frame = pd.concat(parts).drop(columns="label")
    return np.asarray(frame.to_numpy(dtype=np.float64) / WIDTH)


@dataclass(frozen=True)
class SplitFigures:
    """What one split of the columns keeps and loses."""

    kept: int
    local: float  # largest loss of a record at a party
    whole: float  # largest true loss of a record
    ratio: float  # largest true loss of a record over the largest loss of the same record
    least: float  # the smallest ``local`` that so many pruned coefficients can have
    ranks: list[int]


def compute_shares(C: np.ndarray) -> np.ndarray:
    """Return the share of each coefficient of the energy of each record, 0 without energy."""
    energy = (C**2).sum(axis=1, keepdims=True)
    found: np.ndarray = np.divide(C**2, energy, out=np.zeros_like(C), where=energy > 0)
    return found


def measure_split(X: np.ndarray, parties: Sequence[Sequence[int]]) -> SplitFigures:
    """Return the figures of a split, given the columns of each party."""
    m = X.shape[1]
    names = [f"x{j}" for j in range(m)]
    method = DctFuzzy(b=B, p=P, scale="minmax", order=names, others=())
    parts = [method.make_part([names[j] for j in own]) for own in parties]
    tables = [X[:, list(own)] for own in parties]
    bounds = [part.measure_bounds(own) for part, own in zip(parts, tables, strict=True)]
    programme = JointProgramme(
        [PartyBounds(str(t), each.low, each.high - each.low) for t, each in enumerate(bounds)],
        B,
        P,
    )
    pruned = choose_jointly(programme).pruned
    kept = np.setdiff1d(np.arange(m), pruned).tolist()
    coefficients = [part.compute_coefficients(own) for part, own in zip(parts, tables, strict=True)]
    shares = [compute_shares(C) for C in coefficients]
    at_parties = np.max([each[:, pruned].sum(axis=1) for each in shares], axis=0)  # (n,)
    whole = compute_shares(np.sum(coefficients, axis=0))[:, pruned].sum(axis=1)
    has_loss = at_parties > 0
    _, least = choose_least_loss(np.concatenate(shares), len(pruned))
    return SplitFigures(
        kept=len(kept),
        local=float(at_parties.max()),
        whole=float(whole.max()),
        ratio=float((whole[has_loss] / at_parties[has_loss]).max(initial=0.0)),
        least=least,
        ranks=[int(np.linalg.matrix_rank(part.find_map(kept)[1])) for part in parts],
    )


def list_splits(m: int) -> Iterator[tuple[str, list[list[int]]]]:
    """Yield the splits by name, with the columns of each party."""
    for count in (1, 2, 3):
        for seed in range(SPLITS if count > 1 else 1):
            order = np.random.default_rng(seed).permutation(m)
            yield "random", [np.sort(each).tolist() for each in np.array_split(order, count)]
    yield from FIXED_SPLITS.items()


def main(folder: Path) -> None:
    """Print one line for each split."""
    X = read_table(folder)
    print(
        "| split | columns | kept | worst loss at a party | worst true loss | ratio of both | "
        "ratio of a record | least worst loss at a party | ranks |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for name, parties in list_splits(X.shape[1]):
        found = measure_split(X, parties)
        sizes = " + ".join(str(len(each)) for each in parties)
        losses = f"{found.local:.3f} | {found.whole:.3f} | {found.whole / found.local:.2f}"
        rest = f"{found.ratio:.2f} | {found.least:.3f} | {', '.join(map(str, found.ranks))}"
        print(f"| {name} | {sizes} | {found.kept} | {losses} | {rest} |", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
