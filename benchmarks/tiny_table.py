"""A synthetic table of flowers and its release file."""

from __future__ import annotations

import csv
import random
from pathlib import Path

FEATURES = ("sepal_length", "sepal_width", "petal_length", "petal_width")
CLASSES = ("early", "late", "wild")
LIMITS = {
    "amplification.record": "value = 1e9",
    "record_linkage.rate": "value = 0.2",
    "known_pairs.breach_rate": "value = 0.2",
    "membership.true_positive_rate": "value = 0.2",
    "label.rate": "value = 0.05",
    "knn_accuracy": "value = 0.0, absolute = true",
}
RELEASE = """\
format = 1
[dataset]
name = "flowers"
owner = "garden"
audience = "visitors"
record_id = "plant"
[source]
kind = "csv"
path = "flowers.csv"
[columns]
plant = { role = "identifier" }
kind = { role = "label", type = "categorical", categories = ["early", "late", "wild"] }
COLUMNS
[sanitizer]
method = "pca_laplace"
components = 1
b = 0.3
noise_shape = "per_component"
basis = "sample"
basis_share = 0.2
[attacker]
known_records = 8
sample_share = 0.1
epsilon = 0.03
[audit]
effort = "quick"                   # only the required attacks
splits = 3
required = ["transform_inverse", "shrinkage", "known_pairs", "record_linkage", "membership"]
shadow_draws = 3
[limits]
LIMITS
"""


def write_release(folder: Path) -> Path:
    """Write the release file and return its path."""
    feature = '{ role = "feature", type = "numeric", low = 0, high = 10 }'
    columns = "\n".join(f"{name} = {feature}" for name in FEATURES)
    by = 'set_by = "benchmark", reason = "the widest that needs no reviewer"'
    limits = "\n".join(f'"{name}" = {{ {value}, {by} }}' for name, value in LIMITS.items())
    path = folder / "flowers.toml"
    path.write_text(RELEASE.replace("COLUMNS", columns).replace("LIMITS", limits))
    return path


def write_table(folder: Path, seed: int, rows: int) -> None:
    """Write a random table; another seed gives other values."""
    rng = random.Random(seed)
    with (folder / "flowers.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["plant", "kind", *FEATURES])
        for i in range(rows):
            level = 2.0 + 2.0 * (i % 3) + rng.gauss(0, 0.4)
            values = [f"{level + rng.gauss(0, 0.3):.3f}" for _ in FEATURES]
            writer.writerow([f"P{i}", CLASSES[i % 3], *values])
