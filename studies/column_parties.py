"""The cosine coefficients that parties with other columns of the same persons keep, and the loss.

    python -m studies.column_parties FOLDER

Reads `pendigits_train.csv` and `pendigits_test.csv`. The 16 columns are split at random between 2
or 3 parties, as in section 4.5 of the DCT-F paper, with b = 0.1 and p = 0.2. Printed are the kept
coefficients, the largest loss of a record at any party (of its own energy), the true loss of the
complete record, and the rank of one party's part in the kept coefficients: a party with fewer
columns than that could be inverted if its coefficients were not masked.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from ppdm_core.sanitizers._column_parts import ColumnPart
from ppdm_core.sanitizers._joint_selection import JointProgramme, PartyBounds, choose_jointly
from ppdm_core.sanitizers.dct_fuzzy import DctFuzzy

SPLITS = 10
B, P = 0.1, 0.2
WIDTH = 100.0  # of every column: coordinates from 0 to 100


def read_table(folder: Path) -> np.ndarray:
    """Return the 16 coordinates of all digits, scaled by their bounds."""
    import pandas as pd

    parts = [pd.read_csv(folder / f"pendigits_{name}.csv") for name in ("train", "test")]
    frame = pd.concat(parts).drop(columns="label")
    return np.asarray(frame.to_numpy(dtype=np.float64) / WIDTH)


def measure_losses(C: np.ndarray, kept: list[int]) -> np.ndarray:
    """Return the share of each record's energy outside the kept coefficients."""
    energy = (C**2).sum(axis=1)
    has_energy = energy > 0
    found: np.ndarray = 1 - (C[has_energy][:, kept] ** 2).sum(axis=1) / energy[has_energy]
    return found


def measure_split(X: np.ndarray, parties: list[np.ndarray]) -> tuple[int, float, float, list[int]]:
    """Return kept coefficients, worst local and global loss of a record, and ranks of parts."""
    m = X.shape[1]
    names = [f"x{j}" for j in range(m)]
    method = DctFuzzy(b=B, p=P, scale="minmax", order=names, others=())
    parts: list[ColumnPart] = [method.make_part([names[j] for j in own]) for own in parties]
    bounds = [part.measure_bounds(X[:, own]) for part, own in zip(parts, parties, strict=True)]
    programme = JointProgramme(
        [PartyBounds(str(t), each.low, each.high - each.low) for t, each in enumerate(bounds)],
        B,
        P,
    )
    pruned = choose_jointly(programme).pruned
    kept = np.setdiff1d(np.arange(m), pruned).tolist()
    coefficients = [
        part.transform.compute_coefficients(part.pad(X[:, own]))
        for part, own in zip(parts, parties, strict=True)
    ]
    local = max(float(measure_losses(C, kept).max()) for C in coefficients)
    whole = float(measure_losses(np.sum(coefficients, axis=0), kept).max())
    ranks = [int(np.linalg.matrix_rank(part.find_map(kept)[1])) for part in parts]
    return len(kept), local, whole, ranks


def main(folder: Path) -> None:
    """Print one line for each random split."""
    X = read_table(folder)
    print("| parties | columns | kept | worst loss at a party | worst true loss | ratio | ranks |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for count in (1, 2, 3):
        for seed in range(SPLITS if count > 1 else 1):
            order = np.random.default_rng(seed).permutation(X.shape[1])
            parties = [np.sort(each) for each in np.array_split(order, count)]
            kept, local, whole, ranks = measure_split(X, parties)
            sizes = " + ".join(str(len(each)) for each in parties)
            figures = f"{local:.3f} | {whole:.3f} | {whole / local:.2f}"
            shown = ", ".join(map(str, ranks))
            print(f"| {count} | {sizes} | {kept} | {figures} | {shown} |", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
