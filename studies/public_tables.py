"""Public tables as arrays.

The tables are not part of the project. The environment variable PPDM_DATA names a folder with
``wdbc.csv``, ``pima.csv`` and so on; the label is the last column.
"""

from __future__ import annotations

import csv
import gzip
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.rows import ArrayRows, Rows, concatenate_blocks
from ppdm_core.model.schema import Numeric

ADULT_CATEGORICAL = [
    "workclass",
    "education",
    "marital_status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "native_country",
]
EXCLUDED_COLUMNS = ("fnlwgt",)  # a survey weight, not an attribute of the person


def get_data_folder() -> Path:
    """Return the folder with the public tables."""
    return Path(os.environ.get("PPDM_DATA", Path(__file__).resolve().parents[2] / "shared/data"))


def read_columns(folder: Path, name: str) -> dict[str, Any]:
    """Return the cells of each column of a CSV file as text."""
    path, zipped = folder / f"{name}.csv", folder / f"{name}.csv.gz"
    text = path.read_text() if path.exists() else gzip.decompress(zipped.read_bytes()).decode()
    header, *lines = csv.reader(text.splitlines())
    columns = dict(zip(header, np.array(lines).T, strict=True))
    return {head: cells for head, cells in columns.items() if head not in EXCLUDED_COLUMNS}


def parse_numbers(columns: Mapping[str, Any], n: int) -> tuple[tuple[Numeric, ...], Floats]:
    """Return columns with their observed ranges, and their values; empty cells get the median."""
    found, X = [], np.zeros((n, len(columns)))
    for j, (head, cells) in enumerate(columns.items()):
        value = np.array([float(cell) if cell else np.nan for cell in cells.tolist()])
        X[:, j] = np.where(np.isnan(value), np.nanmedian(value), value)
        found.append(Numeric(head, float(X[:, j].min()), float(X[:, j].max())))
    return tuple(found), X


def load_into_memory(rows: Rows) -> ArrayRows:
    """Return all blocks of a table as arrays."""
    whole = concatenate_blocks(list(rows.blocks()), 0)
    return ArrayRows(rows.schema, whole.X, whole.label, whole.key, whole.C, whole.record)


def select_records(rows: ArrayRows, keep: Ints, record: Ints | None = None) -> ArrayRows:
    """Return the records with the numbers ``keep``."""
    whole = rows.whole
    released = (whole.X[keep], whole.label[keep], whole.key[keep], whole.C[keep])
    return ArrayRows(rows.schema, *released, record=record)
