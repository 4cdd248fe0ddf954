"""Parties with some columns each of the same persons, from the alignment to the masked sums.

All run in one process, each as far as the messages of the others let it, again and again from its
first step.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ppdm_core.model.errors import BadInput, PpdmError
from ppdm_core.model.rows import ArrayRows
from ppdm_core.model.schema import Numeric, Schema
from ppdm_core.numerics.noise import Noise
from ppdm_core.sanitizers._column_parts import ColumnPart
from ppdm_core.sanitizers.dct_fuzzy import DctFuzzy
from tasks.centre.column_parts import JoinedRows, join_rows, lead_by_columns
from tasks.centre.task import end_session
from tasks.sites.column_parts import agree_by_columns, align_persons, mask_part
from tasks.sites.exchange import Exchange, StillWaiting
from tests.support.parties import TERMS, Parties
from warehouse.messages.roll import CENTRE

M = 8
NAMES = tuple(f"x{j}" for j in range(M))


def make_method(**given: Any) -> DctFuzzy:
    parameters = {"b": 0.1, "p": 0.3, "scale": "minmax", "order": NAMES, "others": (), **given}
    return DctFuzzy(**parameters)


METHOD = make_method()


def make_key(name: str) -> bytes:
    return hashlib.sha256(name.encode()).digest()


TWO = {"census": [0, 2, 3, 6], "health": [1, 4, 5, 7]}
THREE = {"census": [0, 5], "health": [1, 2, 3], "tax": [4, 6, 7]}


class Columns:
    """Parties in one process with some columns each of the same persons."""

    def __init__(
        self,
        folder: Path,
        split: dict[str, list[int]],
        ids: dict[str, list[str]] | None = None,
        alignment: Any = "shared_id",
        method: DctFuzzy = METHOD,
        n: int = 40,
        classes: int = 0,
    ) -> None:
        """Make the parties; with ``classes`` the first one holds a label of so many classes."""
        self.parties = Parties(folder, tuple(split))
        self.split, self.alignment, self.method = split, alignment, method
        self.classes = classes
        people = [f"p{i}" for i in range(n)]
        rng = np.random.default_rng(4)
        level = rng.uniform(0.3, 0.7, (n, 1))
        self.X = dict(zip(people, np.clip(level + rng.normal(0, 0.1, (n, M)), 0, 1), strict=True))
        self.ids = ids or {name: rng.permutation(people).tolist() for name in split}
        self.aligned: dict[str, Any] = {}
        self.parts: dict[str, np.ndarray] = {}

    def open(self, name: str) -> Exchange:
        exchange = Exchange(self.parties.enter(name), TERMS, 0.0)
        exchange.begin()
        return exchange

    def make_part(self, name: str) -> ColumnPart:
        return self.method.make_part([NAMES[place] for place in self.split.get(name, [])])

    def read(self, name: str) -> np.ndarray:
        return np.array([self.X[each][self.split[name]] for each in self.ids[name]])

    def run_site(self, name: str) -> list[int]:
        exchange = self.open(name)
        aligned = align_persons(exchange, self.ids[name], self.alignment)
        self.aligned[name] = aligned
        X, own = self.read(name)[aligned.places], [NAMES[place] for place in self.split[name]]
        label = [0] * len(X) if self.classes and name == min(self.split) else []
        fit = agree_by_columns(exchange, self.method, own, X, aligned.key, has_label=bool(label))
        part = self.make_part(name)
        schema = Schema(tuple(Numeric(each, 0.0, 1.0) for each in own))
        others = [each for each in NAMES if each not in own]
        method = replace(self.method, others=tuple(others))
        released = method.sanitize(ArrayRows(schema, X), Noise(make_key(name)), fit)
        self.parts[name] = np.concatenate([block.X for block in released.rows.blocks()])
        exchange.session.send(
            CENTRE,
            "coefficients",
            lambda: mask_part(exchange, part, X, self.parts[name], fit["kept"], label),
        )
        return fit["kept"]

    def run_centre(self) -> JoinedRows:
        exchange = self.open(CENTRE)
        try:
            lead_by_columns(exchange, self.method, "mood" if self.classes else None)
            return join_rows(exchange, self.method, self.classes)
        except BadInput:
            end_session(exchange, "refused")
            raise

    def run_all(self, rounds: int = 10) -> dict[str, Any]:
        """Return what each party ended with; each runs from its first step again and again."""
        ended: dict[str, Any] = {}
        runs: dict[str, Callable[[], Any]] = {CENTRE: self.run_centre}
        runs |= {name: lambda name=name: self.run_site(name) for name in self.split}
        for _ in range(rounds):
            for name in [each for each in runs if each not in ended]:
                try:
                    ended[name] = runs[name]()
                except StillWaiting:
                    continue
                except PpdmError as error:
                    ended[name] = error
        return ended
