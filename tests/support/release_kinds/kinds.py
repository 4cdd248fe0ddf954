"""Kinds of releases: how they are made, to which family they belong, and why they are unsafe."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ppdm_core.model.arrays import Floats, Ints
from tests.support.release_kinds.proofs import Evidence, Proof, collect_evidence

Family = Literal[
    "classic",
    "few persons",
    "noise with a hole",
    "invariants of a row",
    "channels beside the value",
    "nonlinear maps",
    "one column",
    "mixed records",
    "safe",
]
Make = Callable[[Floats, np.random.Generator], Floats]


@dataclass(frozen=True, eq=False)
class Kind:
    """A kind of release.

    ``aligned`` is what the audit is told: whether row i is said to belong to record i. If rows are
    in another order, ``find_source`` returns the record of each row.
    """

    name: str
    family: Family
    make: Make
    proof: Proof | None = None  # None: safe
    aligned: bool = True
    columns: Literal["same", "own"] = "same"  # whether names of the original are kept
    find_source: Callable[[Floats], Ints] | None = None
    by_class: bool = False  # made of each class separately

    def release(self, X: Floats, rng: np.random.Generator, label: Ints | None = None) -> Floats:
        """Return a release of a table; of each class separately if the kind asks for it."""
        if not self.by_class or label is None:
            return self.make(X, rng)
        Y = np.empty_like(X)
        for code in np.unique(label):
            Y[label == code] = self.make(X[label == code], rng)
        return Y

    def source(self, X: Floats) -> Ints:
        """Return the record of each row."""
        return np.arange(len(X)) if self.find_source is None else self.find_source(X)

    def prove(self, X: Floats, Y: Floats, others: Floats, rng: np.random.Generator) -> Evidence:
        """Return what the attacker of the proof reaches."""
        assert self.proof is not None
        return collect_evidence(self.proof, X, Y, others, rng, self.source(X))


def make_rng(*names: object) -> np.random.Generator:
    """Return a generator with 128 bits of entropy for these names."""
    digest = hashlib.blake2b(repr(names).encode(), digest_size=16).digest()
    return np.random.default_rng(int.from_bytes(digest, "big"))
