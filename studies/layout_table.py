"""Print the table of choosing_a_method.md about the layouts of nonmetric_mds.

    python -m studies.layout_table      # from the root of the project, about two minutes

The tables are those of studies/public_tables.py, at most 2,000 random records of each.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ppdm_core.model.arrays import Floats
from ppdm_core.model.errors import BadInput
from ppdm_core.model.rows import ArrayRows
from ppdm_core.model.schema import Schema
from ppdm_core.numerics.noise import Noise
from ppdm_core.numerics.scaling import fit_scaling
from ppdm_core.sanitizers.nonmetric_mds import NonmetricMds
from studies.public_table_audit import STUDY_KEY
from studies.public_tables import get_data_folder, load_into_memory, parse_numbers, read_columns

TABLES = {
    "iris": "iris",
    "pima": "pima",
    "wine": "wine",
    "pendigits": "pendigits_train",
    "wdbc": "wdbc",
    "mfeat": "mfeat_fac",
}  # name in the table, and that of the file
MAX_ROWS = 2_000
NEIGHBOURS = 5
LANDMARKS = (100, 400)
TIES = ("secondary", "primary")


def load_numbers(folder: Path, name: str) -> ArrayRows:
    """Return at most MAX_ROWS random records of a table, without its label."""
    columns = read_columns(folder, name)
    n = len(columns.pop("label"))
    some = np.sort(np.random.default_rng(0).permutation(n)[:MAX_ROWS])
    columns = {head: cells[some] for head, cells in columns.items()}
    columns = {head: cells for head, cells in columns.items() if len(set(cells.tolist())) > 1}
    numeric, X = parse_numbers(columns, len(some))
    key = np.random.default_rng(1).integers(0, 256, size=(len(some), 16), dtype=np.uint8)
    return ArrayRows(Schema(numeric), X, key=key)


def compute_neighbourhood_preservation(X: Floats, Y: Floats) -> float:
    """Return the mean share of the nearest neighbours that are kept."""
    from sklearn.neighbors import NearestNeighbors

    before, after = (
        NearestNeighbors(n_neighbors=NEIGHBOURS).fit(A).kneighbors(return_distance=False)
        for A in (X, Y)
    )
    return float(np.mean(np.any(before[:, :, None] == after[:, None, :], axis=2)))


def measure_layout(rows: ArrayRows, sanitizer: NonmetricMds) -> tuple[float, float]:
    """Return the stress of the landmarks and the neighbourhood preservation of all records."""
    scaling = fit_scaling(rows, sanitizer.scale)
    scaled = load_into_memory(scaling.apply(rows))
    fitted = {**sanitizer.fit(scaled), "scaling": scaling.as_dict()}
    released = load_into_memory(sanitizer.sanitize(scaled, Noise(STUDY_KEY), fitted).rows)
    preserved = compute_neighbourhood_preservation(scaled.whole.X, released.whole.X)
    return float(fitted["stress"]), preserved


def format_cells(rows: ArrayRows, dimensions: int, landmarks: int) -> list[str]:
    """Return the stress with secondary ties, and the preservation with each kind of ties."""
    try:
        found = [
            measure_layout(
                rows, NonmetricMds(dimensions=dimensions, landmarks=landmarks, ties=ties)
            )
            for ties in TIES
        ]
    except BadInput:  # fewer landmarks than dimensions
        return ["-"] * (1 + len(TIES))
    return [f"{round(found[0][0], 4):g}", *(f"{preserved:.2f}" for _, preserved in found)]


def main() -> None:
    for name, file in TABLES.items():
        rows = load_numbers(get_data_folder(), file)
        d = len(rows.schema.numeric)
        for dimensions in sorted({min(count, d - 1) for count in (2, 5, d - 1)}):
            cells = [name, f"{d}", f"{dimensions}"]
            for landmarks in LANDMARKS:
                cells += format_cells(rows, dimensions, landmarks)
            print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
