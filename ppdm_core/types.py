"""The shared words: tables, what a method publishes, what an attacker sees, what a score says.

Everything here is frozen data. Letters: ``X`` original (scaled), ``Y`` released, ``n`` records,
``d`` original columns, ``s`` released columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ppdm_core.policy import Effort
from ppdm_core.self_test.result import SelfTestResult

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Codes = NDArray[np.int32]
Keys = NDArray[np.uint8]
S = TypeVar("S")


@dataclass(frozen=True)
class Numeric:
    """A numeric column and the bounds its values were clamped to."""

    name: str
    low: float
    high: float
    from_data: bool = False  # bounds taken from the private data: a weaker promise

    @property
    def width(self) -> float:
        return self.high - self.low


@dataclass(frozen=True)
class Categorical:
    name: str
    categories: tuple[str, ...]
    missing: bool = False  # an empty cell is one more category, coded -1

    @property
    def k(self) -> int:
        """How many different cells there are."""
        return len(self.categories) + self.missing


@dataclass(frozen=True)
class Schema:
    numeric: tuple[Numeric, ...]
    categorical: tuple[Categorical, ...] = ()
    label: Categorical | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.numeric)

    @property
    def lows(self) -> Floats:
        return np.array([column.low for column in self.numeric], dtype=np.float64)

    @property
    def highs(self) -> Floats:
        return np.array([column.high for column in self.numeric], dtype=np.float64)

    @property
    def widths(self) -> Floats:
        return self.highs - self.lows


@dataclass(frozen=True, eq=False)
class Block:
    """Rows ``[start, start + n)`` of a table."""

    X: Floats  # (n, d) clamped and scaled, finite, no -0.0
    C: Codes  # (n, c) codes into schema.categorical, -1 = missing; strings never enter the core
    label: Codes  # (n,) codes, -1 = none
    key: Keys  # (n, 16) who this record is; made where ids are last seen
    record: Ints  # (n,) place in the table of the record that each row was made from
    start: int

    @property
    def n(self) -> int:
        return len(self.X)


class Rows(Protocol):
    """A table as a sequence of blocks, wherever it is stored."""

    @property
    def schema(self) -> Schema: ...
    @property
    def n(self) -> int: ...
    def blocks(self) -> Iterator[Block]: ...
    def reduce(self, step: Callable[[Block], S], merge: Callable[[S, S], S]) -> S: ...
    def map(self, step: Callable[[Block], Block], schema: Schema) -> Rows: ...


@dataclass(frozen=True)
class Guarantee:
    """What a method promises, no more. ``inf`` means that no bound exists."""

    kind: Literal["bounded", "bounded_given_basis", "empirical"]
    ln_component: float
    ln_attribute: float
    ln_record: float
    assumptions: tuple[str, ...] = ()
    without_bound: tuple[str, ...] = ()  # of several methods, those that have none


@dataclass(frozen=True)
class Account:
    """What the releases of a dataset add up to for one record, the one that is worst off.

    Figures are ln gamma. Draws are those of methods without a bound, which no sum can hold.
    """

    spent: float  # before this release
    asked: float  # the most that this release adds to a record
    after: float  # with this release; less than the sum if it is not the same record
    records: int  # that this release draws anew
    over: int = 0  # records that would be beyond the limit
    draws_spent: int = 0
    draws_after: int = 0
    draws_over: int = 0
    unbounded: tuple[str, ...] = ()  # methods without a bound that no limit waives
    has_ids: bool = True  # else every release draws everybody anew


@dataclass(frozen=True)
class Response:
    """A released categorical column, and what a recipient must know to count it right."""

    column: Categorical
    gamma: float  # how much likelier the true cell is than each of the others

    @property
    def kept(self) -> float:
        """Probability that a cell is released as it is."""
        return self.gamma / (self.gamma + self.column.k - 1)


@dataclass(frozen=True, eq=False)
class Public:
    """What the world learns beside the values; handed to recipients and to every attack.

    With a public map the release is ``Z = (X - centre) @ loadings + noise``, published as ``Z``
    (space "components") or as ``centre + Z @ pinv(loadings)`` (space "original").
    """

    method: str
    space: Literal["components", "original", "rotated", "embedded"]
    columns: tuple[str, ...]  # names of the released numeric columns, (s,) or (d,)
    centre: Floats | None = None  # (d,)
    loadings: Floats | None = None  # (d, s)
    law: str | None = None
    scales: Floats | None = None  # (s,) scale of the noise per component
    grid: Floats | None = None  # (s,) every component is a multiple of its grid step
    ranges: Floats | None = None  # (s, 2) interval that the noisy components are clamped to
    preserves_distances: bool = False
    whole: tuple[str, ...] = ()  # columns that hold nothing but whole numbers
    responses: tuple[Response, ...] = ()  # the released categorical columns
    facts: Mapping[str, float | str] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """All released columns but the label."""
        return self.columns + tuple(response.column.name for response in self.responses)


@dataclass(frozen=True, eq=False)
class Released:
    rows: Rows
    public: Public
    atom: float  # largest probability of any single value in one released cell
    counts: Mapping[str, int] = field(default_factory=dict)  # e.g. clipped scores


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


Goal = Literal["reconstruct", "norms", "link", "source", "member", "infer", "pair", "single_out"]


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


class Attack(Protocol):
    name: ClassVar[str]
    story: ClassVar[str]  # one sentence: who the attacker is and what is known
    goal: ClassVar[Goal]
    needs: ClassVar[frozenset[str]]  # fields of the view, and "public.map", "public.noise", ...

    def attack(self, view: AttackerView, rng: np.random.Generator) -> Estimate: ...


@runtime_checkable
class Explained(Protocol):
    """An attack that can tell, once the truth is shown, where it lost what it did not get."""

    def explain(self, view: AttackerView, X: Floats) -> Mapping[str, float]: ...


@dataclass(frozen=True)
class Score:
    """A measured figure: never a bare number."""

    name: str  # "known_pairs.breach_rate", "knn_accuracy"
    kind: Literal["privacy", "utility"]
    better: Literal["up", "down"]
    value: float  # mean over the shadow draws
    low: float
    high: float
    n: int  # records behind the interval
    baseline: float  # the same for somebody who ignores the release
    worst: float  # of the draws
    worst_decile: float | None = None  # on the most isolated tenth of the records
    worst_group: float | None = None  # of the declared groups
    group: str | None = None  # which one that is
    original: float | None = None  # utility only: the same on the original table
    candidate: str | None = None  # which of the attack's candidates was worst (an oracle's choice)
    expected: float | None = None  # what the attacker itself, without the truth, computes for it
    victims: float | None = None  # on the tenth of the records that the attacker is surest of
    notes: Mapping[str, float] = field(default_factory=dict)  # what it can tell of its own work
    sentence: str = ""


@dataclass(frozen=True)
class AuditReport:
    scores: tuple[Score, ...]
    skipped: Mapping[str, str] = field(default_factory=dict)  # name -> why it does not apply
    failed: Mapping[str, str] = field(default_factory=dict)  # name -> type of error, no message
    not_run: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()  # released columns that no attack reads
    copied: tuple[str, ...] = ()  # those of them that name people
    doubts: tuple[str, ...] = ()  # why too little is known for a PASS, whatever was measured
    reasons: Mapping[str, str] = field(default_factory=dict)  # why they were not run, where told
    self_test: SelfTestResult | None = None  # None: the audit did not test itself
