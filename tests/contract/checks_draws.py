"""What the ledger needs of every sanitizer: a name for all that is drawn, and for nothing else."""

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

WHO = 7  # the record that changes


def check_every_draw_has_a_name(sanitizer: Sanitizer) -> None:
    """Names stay while the record stays, and are others wherever another row is released."""
    rows = adapt_columns(make_table(), sanitizer)
    fitted = fit_sanitizer(sanitizer, rows)
    before, names = (
        read_cells(run_sanitizer(sanitizer, rows, fitted=fitted).rows),
        named(sanitizer, rows, fitted),
    )
    assert len(set(names.ravel().tolist())) == names.size, "two draws have one name"
    for what, other in changes(rows).items():
        after = named(sanitizer, other, fitted)
        renamed = np.any(after != names, axis=1)
        assert not np.any(np.delete(renamed, WHO)), f"{what}: it charges others"
        is_new = renamed[WHO]
        assert is_new or what == "label", f"{what}: it charges nobody"
        if sanitizer.row_aligned and not is_new:
            same = (
                read_cells(run_sanitizer(sanitizer, other, fitted=fitted).rows)[WHO] == before[WHO]
            )
            assert np.all(same), f"{what}: another row under the same name"


def changes(rows: ArrayRows) -> Mapping[str, ArrayRows]:
    """The table with one thing of one record changed."""
    whole, schema = rows.whole, rows.schema
    found: dict[str, Block] = {}
    for j in range(len(schema.numeric)):
        X = whole.X.copy()
        X[WHO, j] += 0.01 * (schema.numeric[j].low - X[WHO, j])
        found[f"column {j}"] = replace(whole, X=X)
    for j, column in enumerate(schema.categorical):
        C = whole.C.copy()
        C[WHO, j] = (C[WHO, j] + 1) % len(column.categories)
        found[column.name] = replace(whole, C=C)
    label = whole.label.copy()
    label[WHO] = 1 - label[WHO]
    found["label"] = replace(whole, label=label)
    return {what: ArrayRows(schema, b.X, b.label, b.key, b.C) for what, b in found.items()}


def named(sanitizer: Sanitizer, rows: ArrayRows, fitted: dict[str, Any]) -> np.ndarray:
    """(n, parts) names."""
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
