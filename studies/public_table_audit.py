"""Audits of releases of public tables, without a release file or a warehouse.

The tables are those of studies/public_tables.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ppdm_core.audit.auditor import Auditor
from ppdm_core.audit.draws import collect_inputs, draw_shadows
from ppdm_core.audit.runner import run_audit
from ppdm_core.model.arrays import Codes
from ppdm_core.model.policy import Attacker, Effort, Policy
from ppdm_core.model.rows import ArrayRows
from ppdm_core.model.schema import Categorical, Schema
from ppdm_core.model.score import Score
from ppdm_core.numerics.noise import Noise
from ppdm_core.numerics.scaling import fit_scaling
from ppdm_core.sanitizers import Sanitizer, make_sanitizer
from studies.public_tables import (
    ADULT_CATEGORICAL,
    get_data_folder,
    load_into_memory,
    parse_numbers,
    read_columns,
    select_records,
)

STUDY_KEY = bytes(32)  # public tables need no secret
ATTACKER = Attacker(known_records=40, sample_share=0.1, epsilon=0.1)
MAX_ROWS = 700
MAX_CATEGORIES = 45  # the number of countries in Adult
QUARTILE_NAMES = ("low", "below the middle", "above the middle", "high")


@dataclass(frozen=True)
class Release:
    """A method with its parameters on a table, and the attacker."""

    method: str
    parameters: Mapping[str, Any]
    table: str
    attacker: Attacker = ATTACKER
    draws: int = 2
    splits: int = 3
    effort: Effort = "standard"  # "quick": run only the named attacks, without others to build on
    max_rows: int = MAX_ROWS

    @property
    def sanitizer(self) -> Sanitizer:
        return make_sanitizer(self.method, self.parameters)


def audit_release(
    release: Release, names: Sequence[str], folder: Path | None = None
) -> dict[str, Score]:
    """Run some audits on draws of a release, and return the scores by name."""
    auditor = make_auditor(release, folder or get_data_folder(), names)
    report = run_audit(auditor.run_one, names)
    return {score.name: score for score in report.scores}


def make_auditor(release: Release, folder: Path, names: Sequence[str] = ()) -> Auditor:
    """Draw a release of a public table as the pipeline does, and return its auditor."""
    sanitizer = release.sanitizer
    rows = load_table(folder, release.table, sanitizer.accepts, release.max_rows)
    # The pipeline chooses these records with the key; a study takes every fifth.
    in_basis = np.arange(rows.n) % 5 == 2 if sanitizer.set_aside else np.zeros(rows.n, dtype=bool)
    basis_rows, released = (
        select_records(rows, np.flatnonzero(in_basis)),
        select_records(rows, np.flatnonzero(~in_basis)),
    )
    fit_rows = basis_rows if basis_rows.n else released
    scaling = fit_scaling(fit_rows, sanitizer.scale)
    scaled = load_into_memory(scaling.apply(released))
    fitted = {**sanitizer.fit(scaling.apply(fit_rows)), "scaling": scaling.as_dict()}
    policy = Policy(
        tuple(names),
        {},
        release.attacker,
        shadow_draws=release.draws,
        splits=release.splits,
        effort=release.effort,
    )
    draws = draw_shadows(
        scaled,
        sanitizer,
        Noise(STUDY_KEY),
        fitted,
        policy,
        scope=("study",),
        refit_halves=basis_rows.n == 0,
    )
    inputs = collect_inputs(scaled, draws, row_aligned=sanitizer.row_aligned)
    return Auditor(inputs.original, inputs.draws, policy, b"risk", inputs.halves)


def load_table(
    folder: Path, name: str, kinds: frozenset[str], max_rows: int = MAX_ROWS
) -> ArrayRows:
    """Return some random records with the kinds of columns that a method accepts."""
    columns = read_columns(folder, name)
    n = len(columns["label"])
    some = np.sort(np.random.default_rng(0).permutation(n)[:max_rows])
    columns = {head: cells[some] for head, cells in columns.items()}
    label = columns.pop("label")
    columns = {head: cells for head, cells in columns.items() if len(set(cells.tolist())) > 1}
    categorical = choose_categorical(name, list(columns), kinds)
    numbers = [head for head in columns if head not in categorical and "numeric" in kinds]
    numeric, X = parse_numbers({head: columns[head] for head in numbers}, len(some))
    coded = [
        encode_categories(head, columns[head]) for head in categorical if "categorical" in kinds
    ]
    classes, codes = np.unique(label, return_inverse=True)
    schema = Schema(
        numeric,
        tuple(column for column, _ in coded),
        Categorical("label", tuple(classes.tolist())),
    )
    C = np.array([cells for _, cells in coded], dtype=np.int32).reshape(-1, len(some)).T
    key = np.random.default_rng(1).integers(0, 256, size=(len(some), 16), dtype=np.uint8)
    return ArrayRows(schema, X, codes.astype(np.int32), key, C)


def choose_categorical(name: str, heads: list[str], kinds: frozenset[str]) -> list[str]:
    """Return the columns to read as categories.

    In a table of numbers these are all columns, or every second one if the method also takes
    numbers.
    """
    if name == "adult":
        return ADULT_CATEGORICAL
    if "categorical" not in kinds:
        return []
    return heads[::2] if "numeric" in kinds else heads


def encode_categories(head: str, cells: Any) -> tuple[Categorical, Codes]:
    """Return a column's categories and codes.

    A column with more than MAX_CATEGORIES different numbers is coded by quartile.
    """
    categorical = sorted(set(cells.tolist()) - {""})
    if len(categorical) > MAX_CATEGORIES:
        value = cells.astype(np.float64)
        edges = np.quantile(value, [0.25, 0.5, 0.75])
        return Categorical(head, QUARTILE_NAMES), np.searchsorted(edges, value).astype(np.int32)
    place = {word: code for code, word in enumerate(categorical)}
    codes = np.array([place.get(cell, -1) for cell in cells.tolist()], dtype=np.int32)
    return Categorical(head, tuple(categorical), missing=bool((codes < 0).any())), codes
