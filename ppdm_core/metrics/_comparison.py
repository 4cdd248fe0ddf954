"""A table beside one release of it: what every metric of a release gets."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ppdm_core.model.arrays import Codes, Floats, Ints
from ppdm_core.model.release import Public
from ppdm_core.numerics.linear_map import has_map, project

Bools = NDArray[np.bool_]
T = TypeVar("T")


def generator_named(name: str) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(name.encode()))


@dataclass(frozen=True, eq=False)
class Compared:
    """``rng`` gives a fresh generator for a name, the same one each time: so release and original,
    and all draws of a release, are asked about the same records."""

    X: Floats  # (n, d) original, scaled
    label: Codes  # (n,)
    Y: Floats  # (m, s) released
    public: Public
    rng: Callable[[str], np.random.Generator] = generator_named
    source: Ints | None = None  # (m,) record that each row was made from; None: row i of record i
    C: Codes | None = None  # (n, c) original cells of the columns in public.responses
    answers: Codes | None = None  # (m, c) released ones
    leak: Public | None = None  # with the steward's map, where the public one has none
    table: Compared | None = None  # the original, taken for its own release; made if not given
    _kept: dict[str, Any] = field(default_factory=dict, repr=False)

    def once(self, name: str, make: Callable[[], T]) -> T:
        """What several metrics need is made when the first one asks."""
        if name not in self._kept:
            self._kept[name] = make()
        found: T = self._kept[name]
        return found

    @cached_property
    def original(self) -> Compared:
        if self.table is not None:
            return self.table
        if self.public.method == "original":
            return self
        names = tuple(f"x{j}" for j in range(self.X.shape[1]))
        public = Public("original", "original", names)
        return Compared(self.X, self.label, self.X, public, self.rng, C=self.C, answers=self.C)

    @cached_property
    def records(self) -> Ints:
        """(m,) the record behind each row."""
        return np.arange(len(self.Y)) if self.source is None else self.source

    @cached_property
    def row_label(self) -> Codes:
        return self.label[self.records]

    @cached_property
    def rows(self) -> Floats:
        """The released rows where miners work: in components, where a map is published."""
        if has_map(self.public) and self.public.space == "original":
            return project(self.public, self.Y)
        return self.Y

    @cached_property
    def has_same_columns(self) -> bool:
        return self.public.space == "original" and self.X.shape[1] == self.Y.shape[1]

    def clean(self, records: Ints, *, by_steward: bool = False) -> Floats | None:
        """Originals in the space of ``rows``, if there is a way that recipients can go."""
        public = self.public
        if by_steward and self.leak is not None and not has_map(public):
            public = self.leak
        if has_map(public):
            return project(public, self.X[records])
        return self.X[records] if self.has_same_columns else None

    def rows_of(self, keep: Bools) -> Bools:
        """Which rows stay when only these records do."""
        if self.source is None or not bool((self.source < 0).any()):
            return keep[self.records]
        return keep[np.arange(len(self.Y)) % len(keep)]  # whose they are is not known


@dataclass(frozen=True, eq=False)
class Measured:
    """A figure, and the same without some of the records, which tells how sure it is."""

    value: float
    on: Callable[[Bools], float]
    notes: Mapping[str, float] = field(default_factory=dict)  # beside the figure, by their names
