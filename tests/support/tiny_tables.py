"""Audits of tiny tables of every awkward shape, released by a registered method."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ppdm_core.audit.auditor import Auditor
from ppdm_core.audit.draws import collect_inputs, draw_shadows
from ppdm_core.model.policy import Attacker, Effort, Policy
from ppdm_core.model.rows import ArrayRows
from ppdm_core.model.schema import Categorical, Numeric, Schema
from ppdm_core.numerics.noise import Noise
from ppdm_core.sanitizers import Sanitizer
from tests.support.tables import KEY, WORDS, fit_sanitizer, scale_rows

SHAPES = ("any", "constant column", "whole numbers", "equal records", "many copies", "all zero")


@dataclass(frozen=True)
class TinyTable:
    """The size and shape of a table; its cells follow from the seed."""

    seed: int
    n: int  # records
    d: int  # columns, also more than records
    classes: int
    shape: str

    def make_rows(self, sanitizer: Sanitizer) -> ArrayRows:
        """Return the table with the kinds of columns that the method takes."""
        rng = np.random.default_rng(self.seed)
        X = rng.standard_normal((self.n, self.d)) @ rng.standard_normal((self.d, self.d))
        if self.shape == "constant column":
            X[:, 0] = 1.0
        elif self.shape == "whole numbers":
            X = np.round(X)
        elif self.shape == "equal records":
            X[:] = X[0]
        elif self.shape == "many copies":
            X[rng.random(self.n) < 0.5] = X[0]
        elif self.shape == "all zero":
            X[:] = 0.0
        label = rng.integers(0, self.classes, self.n)
        if self.classes > 1 and rng.random() < 0.5:  # one record of a class of its own
            label = (np.arange(self.n) == 0).astype(np.int64)
        numeric = tuple(
            Numeric(f"x{j}", float(X[:, j].min()) - rng.random(), float(X[:, j].max()) + 1.0)
            for j in range(self.d)
        )
        categorical, C = (), np.zeros((self.n, 0), dtype=np.int32)
        if "categorical" in sanitizer.accepts:
            categorical = WORDS
            C = np.column_stack([rng.integers(0, 3, self.n), rng.integers(-1, 2, self.n)])
        if "numeric" not in sanitizer.accepts:
            numeric, X = (), X[:, :0]
        names = tuple(f"class {k}" for k in range(max(2, self.classes)))
        schema = Schema(numeric, categorical=categorical, label=Categorical("label", names))
        key = rng.integers(0, 256, (self.n, 16), dtype=np.uint8)
        return ArrayRows(schema, X, label.astype(np.int32), key, C.astype(np.int32))


def make_tiny_audit(
    table: TinyTable, sanitizer: Sanitizer, attack: str, known: int, effort: Effort = "quick"
) -> Auditor:
    """Return the audit of a release of the table, and of five of its halves, by one attack."""
    rows = table.make_rows(sanitizer)
    policy = Policy(
        (attack,), {}, Attacker(known, 0.1, 0.1), shadow_draws=2, splits=5, effort=effort
    )
    fitted = fit_sanitizer(sanitizer, rows)
    scaled = scale_rows(rows, fitted)
    draws = draw_shadows(
        scaled, sanitizer, Noise(KEY), fitted, policy, scope=("tiny",), refit_halves=True
    )
    inputs = collect_inputs(scaled, draws, row_aligned=sanitizer.row_aligned)
    return Auditor(inputs.original, inputs.draws, policy, b"tiny", inputs.halves)
