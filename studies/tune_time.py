"""Processor time of a tune against one release of the same table, for the documentation.

    python -m studies.tune_time FOLDER

A generated table of 10,000 records, 20 numbers and a label with three classes gets a draft by
`ppdm init`. `ppdm tune` tries 20 settings of it, and `ppdm release` releases the draft, each in a
home of its own. Times are those of the commands with all their attack processes. A command whose
reply is in the folder is not run again.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from studies.tune_tables import DECIDED, run

N, D, CLASSES, SETTINGS = 10_000, 20, "abc", 20
MOST = 2.0  # times the time of the release


def write_table(path: Path) -> None:
    """Write a table of three classes whose columns are correlated."""
    rng = np.random.default_rng(5)
    classes = rng.integers(0, len(CLASSES), N)
    centres = 0.9 * rng.normal(size=(len(CLASSES), D))
    X = (centres[classes] + rng.normal(size=(N, D))) @ rng.normal(size=(D, D)) / np.sqrt(D)
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow([*(f"x{j:02d}" for j in range(D)), "label"])
        for row, code in zip(X, classes, strict=True):
            table.writerow([*(f"{value:.4f}" for value in row), CLASSES[code]])


def main(arguments: Sequence[str]) -> int:
    """Measure both commands, and print their ratio."""
    seconds = {}
    for command, options in (("tune", ["--settings", str(SETTINGS)]), ("release", [])):
        folder = Path(arguments[0], command)
        folder.mkdir(parents=True, exist_ok=True)
        write_table(folder / "table.csv")
        run(folder, "init", "init", "table.csv", "--out", "table.toml", *DECIDED)
        reply = run(folder, command, command, "table.toml", *options)
        seconds[command] = reply["cpu_seconds"]
    ratio = seconds["tune"] / seconds["release"]
    print(f"tune: {seconds['tune']:.0f} s, release: {seconds['release']:.0f} s, ratio {ratio:.2f}")
    return 0 if ratio <= MOST else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
