"""What an attack receives and returns.

Letters: ``X`` original (scaled), ``Y`` released, ``n`` records, ``d`` original columns, ``s``
released columns.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ppdm_core.model.arrays import Codes, Floats, Ints
from ppdm_core.model.policy import Effort
from ppdm_core.model.release import Public
from ppdm_core.model.schema import Schema

ColumnKind = Literal["numeric", "categorical"]
Goal = Literal["reconstruct", "norms", "link", "source", "member", "infer", "pair", "single_out"]


@dataclass(frozen=True, eq=False)
class People:
    """Original records, as somebody holds them."""

    X: Floats  # (k, d) scaled
    C: Codes  # (k, c) codes of the categorical columns
    label: Codes  # (k,)

    @property
    def n(self) -> int:
        return len(self.X)


@dataclass(frozen=True, eq=False)
class Known:
    """Records whose released rows the attacker knows."""

    X: Floats  # (k, d)
    rows: Ints  # (k,) their positions in the released table


@dataclass(frozen=True, eq=False)
class TwoFiles:
    """The same people in two files with different columns, each in an order of its own."""

    left_columns: Ints  # places in schema.numeric
    left: Floats  # (t, len(left_columns))
    right_columns: Ints
    right: Floats  # (t, len(right_columns))


@dataclass(frozen=True, eq=False)
class Versions:
    """Earlier released rows of the same people, all made in one way; any number of each person."""

    rows: Ints  # (v,) whose they are: rows of the release now
    Y: Floats  # (v, s); NaN in columns that were not released then
    public: Public


@dataclass(frozen=True, eq=False)
class Batches:
    """Rows that came together, or left together, and people of whom it is known with which."""

    rows: Ints  # (m,) number of the batch
    targets: Ints  # (t,)


@dataclass(frozen=True, eq=False)
class AttackerView:
    """All that an attack gets. The truth is not in it, so an attack cannot cheat.

    ``Y`` is shuffled by a private permutation that only the scorer holds. Attacks on membership
    and the like play against a release of one half of the people: the targets are then people of
    both halves, and the reference further people who are not in the release.
    """

    Y: Floats  # (m, s)
    label: Codes  # (m,) released in the clear
    public: Public
    schema: Schema  # of the original columns, scaled
    epsilon: float  # relative error that counts as a breach
    C: Codes | None = None  # (m, c) released answers, codes in the order of public.responses
    effort: Effort = "standard"
    known: Known | None = None
    records: Floats | None = None  # (k, d) known in full, but not which rows are theirs
    sample: Floats | None = None  # (p, d) records of the same population
    targets: People | None = None  # full records of people to find in the release
    partial: Ints | None = None  # columns of schema.numeric that are known of a target in part
    files: TwoFiles | None = None
    reference: People | None = None  # people who are not in the release
    earlier: tuple[Versions, ...] | None = None  # None: which rows belong together is not known
    came: Batches | None = None  # by the earlier releases that had the row as it is
    left: Batches | None = None  # None: nobody is gone since the last release
    leak: Public | None = None  # the same with what the key hides: its map
    reconstructions: Mapping[str, Floats] = field(default_factory=dict)  # (m, d) each, aligned to Y


@dataclass(frozen=True, eq=False)
class Estimate:
    """Candidates of one attack; the audit scores all and reports the worst for the steward.

    goal "reconstruct": (m, d) original values, aligned to ``view.Y``.
    goal "norms": (m,) Euclidean lengths of the records, aligned to ``view.Y``.
    goal "link": (t,) position in ``view.Y`` for each target, -1 for "no answer".
    goal "source": (m, k) for each row of ``view.Y`` the k likeliest targets, best first, -1 for
    none; the claims hold their probabilities, (m, k).
    goal "member": (t,) the higher, the likelier is the target in the release.
    goal "infer": (t, d + c) each column of each target, from its other columns and its label.
    goal "pair": (t,) position in ``files.right`` for each line of ``files.left``, -1 for none.
    goal "single_out": (p, d + c + 1, 2) statements about one person: closed intervals of the
    columns, the codes and the label, all of which hold.
    """

    candidates: Mapping[str, NDArray[Any]]
    claims: Mapping[str, Floats] = field(default_factory=dict)  # own breach probability per row
    scenarios: Mapping[str, Mapping[str, NDArray[Any]]] = field(default_factory=dict)
    notes: Mapping[str, float] = field(default_factory=dict)  # what it can tell of its own work


class Attack(ABC):
    """One thing that an attacker could try on a release.

    An attack receives an ``AttackerView`` and never the original table. To be required by a policy
    or judged by a limit, it names at least one planted leak that it must notice.
    """

    name: ClassVar[str]
    story: ClassVar[str]  # one sentence: who the attacker is and what is known
    goal: ClassVar[Goal]
    needs: ClassVar[frozenset[str]]  # fields of the view, and "public.map", "public.noise", ...
    reads: ClassVar[frozenset[ColumnKind]] = frozenset({"numeric"})  # columns it can work on alone
    must_notice: ClassVar[Mapping[str, float]] = {}  # planted leak -> least share of the trials

    @abstractmethod
    def attack(self, view: AttackerView, rng: np.random.Generator) -> Estimate:
        """Return the candidates that this attack finds."""


@runtime_checkable
class Explained(Protocol):
    """An attack that can tell, once the truth is shown, where it lost what it did not get."""

    def explain(self, view: AttackerView, X: Floats) -> Mapping[str, float]: ...
