"""What the ledger needs of every sanitizer: a name for each draw, and for nothing else."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ppdm_core.model.rows import ArrayRows, Block
from ppdm_core.numerics.noise import Noise
from ppdm_core.sanitizers import Sanitizer
from tests.support.tables import (
    KEY,
    adapt_columns,
    fit_sanitizer,
    make_table,
    read_cells,
    run_sanitizer,
    scale_rows,
)

RECORD = 7  # the record that changes


def check_every_draw_has_a_name(sanitizer: Sanitizer) -> None:
    """A name is kept while its record is unchanged, and another row has another name."""
    rows = adapt_columns(make_table(), sanitizer)
    fitted = fit_sanitizer(sanitizer, rows)
    before, names = (
        read_cells(run_sanitizer(sanitizer, rows, fitted=fitted).rows),
        name_draws(sanitizer, rows, fitted),
    )
    assert len(set(names.ravel().tolist())) == names.size, "two draws have one name"
    for what, other in change_record(rows).items():
        after = name_draws(sanitizer, other, fitted)
        renamed = np.any(after != names, axis=1)
        assert not np.any(np.delete(renamed, RECORD)), f"{what}: it charges others"
        is_new = renamed[RECORD]
        assert is_new or what == "label", f"{what}: it charges no record"
        if sanitizer.row_aligned and not is_new:
            same = (
                read_cells(run_sanitizer(sanitizer, other, fitted=fitted).rows)[RECORD]
                == before[RECORD]
            )
            assert np.all(same), f"{what}: another row under the same name"


def change_record(rows: ArrayRows) -> Mapping[str, ArrayRows]:
    """Return the table with one cell of one record changed, for each column."""
    whole, schema = rows.whole, rows.schema
    found: dict[str, Block] = {}
    for j in range(len(schema.numeric)):
        X = whole.X.copy()
        X[RECORD, j] += 0.01 * (schema.numeric[j].low - X[RECORD, j])
        found[f"column {j}"] = replace(whole, X=X)
    for j, column in enumerate(schema.categorical):
        C = whole.C.copy()
        C[RECORD, j] = (C[RECORD, j] + 1) % len(column.categories)
        found[column.name] = replace(whole, C=C)
    label = whole.label.copy()
    label[RECORD] = 1 - label[RECORD]
    found["label"] = replace(whole, label=label)
    return {what: ArrayRows(schema, b.X, b.label, b.key, b.C) for what, b in found.items()}


def name_draws(sanitizer: Sanitizer, rows: ArrayRows, fitted: dict[str, Any]) -> np.ndarray:
    """Return the names of all draws, (n, parts)."""
    X = scale_rows(rows, fitted)
    (block,) = X.blocks()
    parts = sanitizer.parts(X.schema, fitted)
    noise = Noise(KEY)
    columns = [noise.name_draws(block.key, p.consumed(block), p.fingerprint) for p in parts]
    return np.stack([column.copy().view("S16")[:, 0] for column in columns], axis=1)


def check_charges_add_up(sanitizer: Sanitizer) -> None:
    rows = adapt_columns(make_table(), sanitizer)
    fitted = fit_sanitizer(sanitizer, rows)
    schema = scale_rows(rows, fitted).schema
    charged = math.fsum(part.ln_record for part in sanitizer.parts(schema, fitted))
    promised = sanitizer.guarantee(schema, fitted).ln_record
    assert math.isclose(charged, promised), f"it charges {charged} and promises {promised}"
