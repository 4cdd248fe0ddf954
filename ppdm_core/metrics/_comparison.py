"""A table and one release of it: the input of every metric of a release."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from ppdm_core.model.arrays import Bools, Codes, Floats, Ints
from ppdm_core.model.release import PublicParameters
from ppdm_core.numerics.linear_map import has_map, project

T = TypeVar("T")


def make_generator(name: str) -> np.random.Generator:
    """Return a generator that is seeded by a name."""
    return np.random.default_rng(zlib.crc32(name.encode()))


@dataclass(frozen=True, eq=False)
class ReleaseComparison:
    """An original table and one release of it.

    ``rng`` returns a new generator for a name, with the same seed each time, so that release and
    original, and all draws of a release, are measured on the same records.
    """

    X: Floats  # (n, d) original, scaled
    label: Codes  # (n,)
    Y: Floats  # (m, s) released
    public: PublicParameters
    rng: Callable[[str], np.random.Generator] = make_generator
    source: Ints | None = None  # (m,) record that each row was made from; None: row i of record i
    cells: Floats | None = None  # (m, s) a released file as it is; None: no file was released
    C: Codes | None = None  # (n, c) original cells of the columns in public.responses
    released_codes: Codes | None = None  # (m, c) released ones
    steward_map: PublicParameters | None = None  # if the public map is secret
    table: ReleaseComparison | None = None  # the original as its own release; default: made here
    units: tuple[Floats, Floats] | None = None  # offset and unit: X * unit + offset are the records
    _cache: dict[str, Any] = field(default_factory=dict, repr=False)

    def get_or_compute(self, name: str, make: Callable[[], T]) -> T:
        """Return the value stored under a name, which several metrics share; compute it once."""
        if name not in self._cache:
            self._cache[name] = make()
        found: T = self._cache[name]
        return found

    def share_cache(self, known: dict[str, Any]) -> None:
        """Use and fill a cache of a comparison of the same tables, with the same generators."""
        known.update(self._cache)
        object.__setattr__(self, "_cache", known)

    @cached_property
    def original(self) -> ReleaseComparison:
        if self.table is not None:
            return self.table
        if self.public.method == "original":
            return self
        names = tuple(f"x{j}" for j in range(self.X.shape[1]))
        public = PublicParameters("original", "original", names)
        return ReleaseComparison(
            self.X, self.label, self.X, public, self.rng, C=self.C, released_codes=self.C
        )

    @cached_property
    def records(self) -> Ints:
        """(m,) record that each row was made from."""
        return np.arange(len(self.Y)) if self.source is None else self.source

    @cached_property
    def row_label(self) -> Codes:
        return self.label[self.records]

    @cached_property
    def rows(self) -> Floats:
        """Released rows in the space where miners work: in components if a map is published."""
        if has_map(self.public) and self.public.space == "original":
            return project(self.public, self.Y)
        return self.Y

    @cached_property
    def has_same_columns(self) -> bool:
        return self.public.space == "original" and self.X.shape[1] == self.Y.shape[1]

    def map_clean_records(self, records: Ints, *, by_steward: bool = False) -> Floats | None:
        """Return originals in the space of ``rows``; None if recipients have no way to map them."""
        public = self.public
        if by_steward and self.steward_map is not None and not has_map(public):
            public = self.steward_map
        if has_map(public):
            return project(public, self.X[records])
        return self.X[records] if self.has_same_columns else None

    def select_rows(self, keep: Bools) -> Bools:
        """Return the mask of the rows that remain if only these records are kept."""
        if self.source is None or not bool((self.source < 0).any()):
            return keep[self.records]
        return keep[np.arange(len(self.Y)) % len(keep)]  # the record of a row is not known


@dataclass(frozen=True, eq=False)
class Measurement:
    """A value, and a function that recomputes it on some of the records, for its interval."""

    value: float
    recompute: Callable[[Bools], float]
    notes: Mapping[str, float] = field(default_factory=dict)  # further values, by name
    each: tuple[Ints, Floats] | None = None  # if it is a mean: records, and the value of each
