"""What a metric is: one kind for each goal of an attack and one for releases, and their checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from ppdm_core.metrics._comparison import Compared, Measured
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.attacker import ColumnKind
from ppdm_core.model.errors import Defect
from ppdm_core.model.schema import Schema

Kind = Literal["privacy", "utility"]
Better = Literal["up", "down"]


@dataclass(frozen=True)
class Told:
    """What a metric puts into a sentence."""

    value: float
    baseline: float
    story: str = ""  # who the attacker is
    epsilon: float = 0.0
    original: float | None = None


class _Metric(Protocol):
    name: ClassVar[str]
    kind: ClassVar[Kind]
    better: ClassVar[Better]
    bounds: ClassVar[tuple[float, float]]
    is_rate: ClassVar[bool]  # a mean of 0 or 1 per record
    gateable: ClassVar[bool]  # else only for screening: no limit may stand on it
    describe: ClassVar[str]
    # Capabilities, with the values of most metrics.
    reads: ClassVar[frozenset[ColumnKind]] = frozenset({"numeric"})  # runs if one is released
    in_quick_audit: ClassVar[bool] = False
    in_summary: ClassVar[bool] = False  # shown on the console at a glance
    needs_alignment: ClassVar[bool] = True  # needs to know which record each row was made from
    is_headline: ClassVar[bool] = False  # its goal is judged by it in the self-test
    uses_claims: ClassVar[bool] = False  # reported with the attacker's own probabilities
    must_notice: ClassVar[Mapping[str, float]] = {}  # planted leak -> least share of trials
    needs_method: ClassVar[bool] = False  # needs to know by which method the release was made

    def sentence(self, told: Told) -> str:
        """The figure in words for a steward."""
        ...


class ReconstructMetric(_Metric, Protocol):
    """How far an attacker's table is from the truth, on any subset of the records.

    ``ranges`` are the columns' widths in the whole table; without them those of ``X`` are taken.
    The baseline is the same measure on one answer for everybody.
    """

    goal: ClassVar[Literal["reconstruct"]]

    def measure(
        self,
        X: Floats,
        X_hat: Floats,
        schema: Schema,
        epsilon: float,
        ranges: Floats | None = None,
    ) -> float: ...


class NormMetric(_Metric, Protocol):
    """How far lengths of records are from the truth; the baseline is one for everybody."""

    goal: ClassVar[Literal["norms"]]

    def measure(self, length: Floats, length_hat: Floats, epsilon: float) -> float: ...


class LinkMetric(_Metric, Protocol):
    """How many targets were found.

    ``link`` is the record that each answer belongs to, -1 for none; ``truth`` the one looked for.
    """

    goal: ClassVar[Literal["link"]]

    def measure(self, link: Ints, truth: Ints) -> float: ...
    def baseline(self, n: int) -> float: ...


class PairMetric(_Metric, Protocol):
    """How many people were put together; the baseline are people who are not in the release."""

    goal: ClassVar[Literal["pair"]]

    def measure(self, link: Ints, truth: Ints) -> float: ...


class SourceMetric(_Metric, Protocol):
    """How sure the records behind rows are: guesses best first, and their probabilities."""

    goal: ClassVar[Literal["source"]]

    def measure(self, guess: Ints, probability: Floats, truth: Ints) -> float: ...
    def baseline(self, n: int) -> float: ...


class MemberMetric(_Metric, Protocol):
    """How well members of the release are told from others.

    The interval is that of the mean over several releases of what was ``asked``, which count as
    so many different ``members`` and ``others``.
    """

    goal: ClassVar[Literal["member"]]

    def measure(self, score: Floats, is_member: NDArray[np.bool_]) -> float: ...
    def baseline(self, is_member: NDArray[np.bool_]) -> float: ...
    def interval(
        self,
        asked: Sequence[tuple[Floats, NDArray[np.bool_]]],
        members: int,
        others: int,
        level: float,
    ) -> tuple[float, float]: ...


class InferMetric(_Metric, Protocol):
    """How well columns of people are inferred from their other columns.

    ``guess`` and ``truth`` hold numeric columns first, then codes. The baseline is the same
    measure on people who are not in the release.
    """

    goal: ClassVar[Literal["infer"]]

    def measure(self, guess: Floats, truth: Floats, schema: Schema, epsilon: float) -> float: ...


class SingleOutMetric(_Metric, Protocol):
    """How many statements hold for one person in a table and no other.

    The baseline is what chance gives among as many people, told by some outside the release.
    """

    goal: ClassVar[Literal["single_out"]]

    def measure(self, statements: Floats, table: Floats) -> float: ...
    def baseline(self, statements: Floats, members: Floats, others: Floats) -> float: ...


class ReleaseMetric(_Metric, Protocol):
    """What the release is worth, of one draw of it."""

    goal: ClassVar[Literal["release"]]
    most: ClassVar[int]  # records that are asked about, of however many
    needs_label: ClassVar[bool]

    def measure(self, compared: Compared) -> Measured: ...
    def original(self, compared: Compared) -> float:
        """The same on the original table."""
        ...

    def baseline(self, compared: Compared) -> float:
        """The same for somebody who ignores the release."""
        ...


class ChangeMetric(_Metric, Protocol):
    """What a release costs a miner, record by record: more is wrong with the release if above 0."""

    goal: ClassVar[Literal["change"]]

    def measure(self, change: Floats) -> float: ...


AttackMetric = (
    ReconstructMetric
    | NormMetric
    | LinkMetric
    | SourceMetric
    | MemberMetric
    | InferMetric
    | PairMetric
    | SingleOutMetric
)
Metric = AttackMetric | ReleaseMetric | ChangeMetric


def column_mean_guess(X: Floats) -> Floats:
    """The answer of somebody who knows the column means and ignores the release."""
    return np.broadcast_to(X.mean(axis=0), X.shape)


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def check_tables(name: str, X: Floats, other: Floats, *, same_shape: bool) -> None:
    """A score of NaN or of misaligned rows must never reach a gate."""
    if len(X) == 0 or len(X) != len(other) or (same_shape and X.shape != other.shape):
        raise Defect(f"{name} got tables of shape {X.shape} and {other.shape}.")
    check_finite(name, X)
    check_finite(name, other)


def check_finite(name: str, values: Floats) -> None:
    bad = int(np.sum(~np.isfinite(values)))
    if bad:
        raise Defect(f"{name} got {bad} values that are not finite.")


def check_links(name: str, link: Ints, truth: Ints) -> None:
    if link.shape != truth.shape or link.ndim != 1 or len(link) == 0:
        raise Defect(f"{name} got links of shape {link.shape} for {truth.shape} targets.")
    if not np.issubdtype(link.dtype, np.integer) or bool((truth < 0).any()):
        raise Defect(f"{name} needs whole numbers as links, and a record per target.")
