"""What an attack receives and returns.

Letters: ``X`` original (scaled), ``Y`` released, ``n`` records, ``d`` original columns, ``s``
released columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, TypeVar

from numpy.typing import NDArray

from ppdm_core.model.arrays import Codes, Floats, Ints
from ppdm_core.model.policy import Effort
from ppdm_core.model.release import PublicParameters
from ppdm_core.model.schema import Schema

T = TypeVar("T")
RowMap = Callable[[Floats], Floats]  # released rows to estimates of their records
ColumnKind = Literal["numeric", "categorical"]
# Scenarios of a linker: this share of the targets, of which it is surest; -1 for the others.
SUREST_SHARES: dict[str, float] = {"surest": 0.1, "few": 0.02}
Goal = Literal["reconstruct", "norms", "link", "source", "member", "infer", "pair", "single_out"]


@dataclass(frozen=True, eq=False)
class RecordSet:
    """Original records that an attacker holds."""

    X: Floats  # (k, d) scaled
    C: Codes  # (k, c) codes of the categorical columns
    label: Codes  # (k,)

    @property
    def n(self) -> int:
        return len(self.X)


@dataclass(frozen=True, eq=False)
class KnownRows:
    """Original records whose released rows the attacker knows."""

    X: Floats  # (k, d)
    rows: Ints  # (k,) their positions in the released table


@dataclass(frozen=True, eq=False)
class SplitFiles:
    """Two files about the same persons with different columns, each in its own row order."""

    left_columns: Ints  # positions in schema.numeric
    left: Floats  # (t, len(left_columns))
    right_columns: Ints
    right: Floats  # (t, len(right_columns))


@dataclass(frozen=True, eq=False)
class RelatedColumns:
    """What another party of a common release holds of the same persons, and which row is whose."""

    known: Floats  # (k, q) of the known records
    targets: Floats  # (t, q)
    rows: Ints  # (t,) positions of the targets in the released table, -1 for those outside it


@dataclass(frozen=True, eq=False)
class EarlierRows:
    """Rows released earlier for the same persons, all with the same public parameters.

    A person may have any number of them, also none.
    """

    rows: Ints  # (v,) positions of the persons' rows in the current release
    Y: Floats  # (v, s); NaN in columns that were not released then
    public: PublicParameters


@dataclass(frozen=True, eq=False)
class Batches:
    """Rows grouped by the releases in which they appeared or disappeared together.

    The attacker knows the batch of each target.
    """

    rows: Ints  # (m,) batch number of each row
    targets: Ints  # (t,) batch number of each target


@dataclass(frozen=True, eq=False)
class SiteMoments:
    """Moments of the records that one site set aside: the sum of all sites without the others."""

    n: int
    mean: Floats  # (d,)
    covariance: Floats  # (d, d)


@dataclass(frozen=True, eq=False)
class RowBlock:
    """Some consecutive rows of a released table."""

    Y: Floats  # (b, s)
    label: Codes  # (b,)
    C: Codes  # (b, c) released responses


class FurtherRows(Protocol):
    """Rows of a large release that are read in blocks, after those in memory."""

    @property
    def n(self) -> int: ...
    def blocks(self) -> Iterator[RowBlock]: ...


@dataclass(frozen=True, eq=False)
class AttackerView:
    """Everything that an attack receives. It does not hold the original table.

    ``Y`` is shuffled by a private permutation that only the evaluator holds. Attacks on membership
    and similar ones run on a release of one half of the records: the targets then come from both
    halves, and the reference holds further persons who are not in the release.
    """

    Y: Floats  # (m, s)
    label: Codes  # (m,) released unperturbed
    public: PublicParameters
    schema: Schema  # of the original columns, scaled
    epsilon: float  # relative error that counts as a breach
    C: Codes | None = None  # (m, c) released responses, codes in the order of public.responses
    effort: Effort = "standard"
    offset: Floats | None = None  # (d,) original value = offset + unit * scaled value
    unit: Floats | None = None  # (d,)
    known: KnownRows | None = None
    records: Floats | None = None  # (k, d) complete known records, without their row positions
    sample: Floats | None = None  # (p, d) records of the same population
    targets: RecordSet | None = None  # complete records of the persons to find in the release
    partial_columns: Ints | None = None  # columns of schema.numeric known in the partial scenario
    split_files: SplitFiles | None = None
    reference: RecordSet | None = None  # persons who are not in the release
    earlier_releases: tuple[EarlierRows, ...] | None = None  # None: rows cannot be matched
    arrival_batches: Batches | None = None  # by the earlier releases that hold the same row
    departure_batches: Batches | None = None  # None: no row disappeared since the last release
    leaked_map: PublicParameters | None = None  # ``public`` with the map that the key hides
    partner_rows: Ints | None = None  # rows of sites that release together; they know which
    site_moments: SiteMoments | None = None  # of the site that the other sites attack
    related: RelatedColumns | None = None  # None: the release is no part of a common one
    reconstructions: Mapping[str, Floats] = field(default_factory=dict)  # (m, d) each, aligned to Y
    further: FurtherRows | None = None  # None: all rows of the release are in ``Y``
    reconstruct: Mapping[str, RowMap] = field(default_factory=dict)  # the same for further rows
    basis: AttackerView | None = None  # of a view of further rows: where statistics are taken
    computed: dict[str, tuple[Floats, Any]] = field(default_factory=dict, repr=False)

    @property
    def fitted(self) -> AttackerView:
        """The view whose rows maps and moments are fitted to."""
        return self if self.basis is None else self.basis

    @property
    def is_block(self) -> bool:
        """Whether this view holds some of the rows of a large release."""
        return self.further is not None or self.basis is not None

    def compute_once(self, name: str, compute: Callable[[Floats], T]) -> T:
        """Return a function of the rows; views that differ only in who is known share it."""
        if name not in self.computed or self.computed[name][0] is not self.Y:
            self.computed[name] = self.Y, compute(self.Y)
        found: T = self.computed[name][1]
        return found

    def iterate_parts(self) -> Iterator[tuple[int, AttackerView]]:
        """Yield this view, then views of the further rows, with the position of the first row.

        A search looks at each part in turn and merges what it finds.
        """
        yield 0, self
        start = len(self.Y)
        for block in () if self.further is None else self.further.blocks():
            yield (
                start,
                replace(
                    self,
                    Y=block.Y,
                    label=block.label,
                    C=None if self.C is None else block.C,
                    reconstructions=MappedRows(block.Y, self.reconstruct),
                    further=None,
                    basis=self,
                ),
            )
            start += len(block.Y)


class MappedRows(Mapping[str, Floats]):
    """Estimates of released rows by functions of the rows, each computed when it is read.

    A function must estimate each row from this row alone, apart from what it was fitted to. The
    audit also applies it to rows that are not in memory.
    """

    def __init__(
        self,
        Y: Floats,
        maps: Mapping[str, RowMap],
        known: KnownRows | None = None,
        found: Mapping[str, Floats] | None = None,
    ) -> None:
        """Map the rows ``Y``; the records of known rows are inserted.

        ``found``: estimates that are computed already. Their functions are too slow to be applied
        to the further rows of a large release.
        """
        self.Y, self.maps, self.known, self.found = Y, maps, known, found or {}

    @property
    def is_fast(self) -> bool:
        """Whether the functions can be applied to any number of rows."""
        return not self.found

    def __getitem__(self, name: str) -> Floats:
        if name in self.found:
            return self.found[name]
        X_hat = self.maps[name](self.Y)
        if self.known is not None:
            X_hat[self.known.rows] = self.known.X
        return X_hat

    def __iter__(self) -> Iterator[str]:
        return iter(self.maps)

    def __len__(self) -> int:
        return len(self.maps)

    def select(self, rows: Ints) -> MappedRows:
        """Return the estimates of some rows, none of which is known."""
        found = {name: X_hat[rows] for name, X_hat in self.found.items()}
        return MappedRows(self.Y[rows], self.maps, found=found)

    def keep(self, name: str) -> MappedRows:
        """Return one of the estimates."""
        found = {name: self.found[name]} if name in self.found else None
        return MappedRows(self.Y, {name: self.maps[name]}, self.known, found)


@dataclass(frozen=True, eq=False)
class Estimate:
    """Candidate results of one attack; the audit scores all and reports the most harmful one.

    goal "reconstruct": (m, d) original values, aligned to ``view.Y``.
    goal "norms": (m,) Euclidean lengths of the records, aligned to ``view.Y``.
    goal "link": (t,) position in ``view.Y`` for each target, -1 for none; positions of further rows
    follow those of ``view.Y``.
    goal "source": (m, k) for each row of ``view.Y`` the k likeliest targets, best first, -1 for
    none; the claims hold their probabilities, (m, k).
    goal "member": (t,) membership scores; a higher score means a likelier member.
    goal "infer": (t, d + c) each column of each target, from its other columns and its label.
    goal "pair": (t,) position in ``split_files.right`` for each line of ``split_files.left``,
    -1 for none.
    goal "single_out": (p, d + c + 1, 2) predicates that should match one person: closed intervals
    of the columns, the codes and the label, all of which hold.
    """

    candidates: Mapping[str, NDArray[Any]]
    claims: Mapping[str, Floats] = field(default_factory=dict)  # own breach probability per row
    scenarios: Mapping[str, Mapping[str, NDArray[Any]]] = field(default_factory=dict)
    notes: Mapping[str, float] = field(default_factory=dict)  # diagnostics of the attack itself
