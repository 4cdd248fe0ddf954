"""Compare ``noise_aware`` with simple classifiers on public and generated tables.

    python -m studies.classifier_shortfall shortfall.jsonl    # measure the rest, print the table

Twelve public tables, at most 2,000 records of each (see studies/classifier_accuracy.py), and eight
generated ones with rare classes, outliers, and classes that are not normal (see
studies/class_tables.py). Each is released with noise b of 0.1, 0.2 and 0.3 in five draws. A draw of
a generated table generates it anew and releases all components, a draw of a public table half of
them. Three tenths of the records are queries. The file contains one line for each release, so that
a run that was stopped can continue.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from studies import classifier_accuracy as accuracy
from studies.class_tables import GENERATED_TABLES, generate_table

NOISE_LEVELS = (0.1, 0.2, 0.3)
DRAWS = 5
PEERS = ("k = 5", "best k", "nearest centroid", "commonest")
OURS = "noise-aware"
TABLES = (*accuracy.TABLE_TITLES, *GENERATED_TABLES)


@dataclass(frozen=True)
class Comparison:
    """The accuracies of all classifiers on one release."""

    table: str
    b: float
    draw: int
    accuracy: dict[str, float]

    @property
    def shortfall(self) -> float:
        """By how much the best of the simple classifiers is better, at least 0."""
        return max(0.0, max(self.accuracy[name] for name in PEERS) - self.accuracy[OURS])

    @property
    def below_commonest(self) -> float:
        return self.accuracy["commonest"] - self.accuracy[OURS]


def compare_classifiers(table: str, b: float, draw: int) -> Comparison:
    """Release a table and classify the queries."""
    task = draw_release(table, b, draw)
    found = accuracy.measure_classifiers(task, (OURS, "k = 5", "best k", "nearest centroid"))
    shares = {name: round(figures["accuracy"], 4) for name, figures in found.items()}
    return Comparison(table, b, draw, shares)


def draw_release(table: str, b: float, draw: int) -> accuracy.ClassificationTask:
    """Return one release of a public or generated table, and its queries."""
    if table in GENERATED_TABLES:
        return accuracy.draw_task(generate_table(table, draw), b, draw, 0.3, component_share=1.0)
    rows = accuracy.load_table(table, None, accuracy.MAX_UNBALANCED_RECORDS)
    return accuracy.draw_task(rows, b, draw, 0.3)


def read_comparisons(path: Path) -> list[Comparison]:
    """Return the comparisons of a file."""
    lines = path.read_text().splitlines() if path.exists() else []
    return [Comparison(**json.loads(line)) for line in lines]


def complete_file(path: Path) -> list[Comparison]:
    """Measure what the file does not contain and append it."""
    found = read_comparisons(path)
    known = {(each.table, each.b, each.draw) for each in found}
    for table in TABLES:
        for b in NOISE_LEVELS:
            for draw in range(DRAWS):
                if (table, b, draw) in known:
                    continue
                found.append(compare_classifiers(table, b, draw))
                with path.open("a") as file:
                    file.write(json.dumps(asdict(found[-1])) + "\n")
    return found


def format_table(comparisons: Sequence[Comparison]) -> list[str]:
    """Return the lines of the table: percent correct in the mean of all levels and draws."""
    heads = ["table", *PEERS, OURS, "shortfall", "largest", "largest below commonest"]
    lines = [heads, ["---"] * len(heads)]
    for table in TABLES:
        mine = [each for each in comparisons if each.table == table]
        lines.append([accuracy.TABLE_TITLES.get(table, table), *format_cells(mine)])
    for b in NOISE_LEVELS:
        lines.append([f"all, b = {b}", *format_cells([c for c in comparisons if c.b == b])])
    lines.append(["all", *format_cells(comparisons)])
    return [f"| {' | '.join(cells)} |" for cells in lines]


def format_cells(comparisons: Sequence[Comparison]) -> list[str]:
    """Return the mean accuracies, and the mean and largest shortfall, in points."""
    means = [np.mean([each.accuracy[name] for each in comparisons]) for name in (*PEERS, OURS)]
    shortfalls = [each.shortfall for each in comparisons]
    largest = max(shortfalls), max(each.below_commonest for each in comparisons)
    return [f"{100 * share:.1f}" for share in (*means, np.mean(shortfalls), *largest)]


def main(arguments: Sequence[str]) -> None:
    print("\n".join(format_table(complete_file(Path(arguments[0])))))


if __name__ == "__main__":
    main(sys.argv[1:])
