"""The base classes of metrics, one for each attack goal and two for releases."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol

from ppdm_core.metrics._comparison import Measurement, ReleaseComparison
from ppdm_core.metrics._values import average, percent
from ppdm_core.model.arrays import Bools, Floats, Ints
from ppdm_core.model.attacker import ColumnKind
from ppdm_core.model.errors import Defect
from ppdm_core.model.schema import Schema

Kind = Literal["privacy", "utility"]
Better = Literal["up", "down"]
# How the interval of a score is made:
# "mean": the value is the mean of one number for each person, within the bounds of the metric;
# "own": by the metric itself;
# "jackknife": from values without some of the records. It covers what other releases of the same
# table would give, not what other tables would;
# "none": a fact about this very release, which has no sampling error.
IntervalMethod = Literal["mean", "own", "jackknife", "none"]


@dataclass(frozen=True)
class SentenceValues:
    """The values that a metric formats as a sentence."""

    value: float
    baseline: float
    story: str = ""  # who the attacker is
    epsilon: float = 0.0
    original: float | None = None


class _Metric(Protocol):
    """What a metric declares, with the values of most metrics of an attack.

    ``ceiling`` is an excess over the baseline: with 0.2, one person in five may be affected who is
    not without the release. For errors, where more is better, it is a share of the baseline: if
    one record in five is known exactly, the mean error is a fifth smaller.
    """

    name: ClassVar[str]
    describe: ClassVar[str]  # in a few words
    title: ClassVar[str] = ""  # a line of a plot, for metrics of a release; "": ``describe``
    utility_name: ClassVar[str] = ""  # what `ppdm tune --utility` calls it; "": not offered
    template: ClassVar[str]  # {story} {value} {baseline} {epsilon} {original}, as in ``sentence``
    original_phrase: ClassVar[str] = ", {} on the original table"  # {original}, if it is known
    kind: ClassVar[Kind] = "privacy"
    better: ClassVar[Better] = "down"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    interval_method: ClassVar[IntervalMethod]
    gateable: ClassVar[bool] = True  # False: for information only, no limit may use it
    ceiling: ClassVar[float] = 0.2  # privacy: the largest limit that needs no reviewer, see below
    reads: ClassVar[frozenset[ColumnKind]] = frozenset({"numeric"})  # runs if one is released
    in_quick_audit: ClassVar[bool] = False
    in_summary: ClassVar[bool] = False  # shown on the console at a glance
    needs_alignment: ClassVar[bool] = True  # needs to know which record each row was made from
    is_headline: ClassVar[bool] = False  # its goal is judged by it in the self-test
    uses_claims: ClassVar[bool] = False  # reported with the attacker's own probabilities
    must_notice: ClassVar[Mapping[str, float]] = {}  # planted leak -> least share of trials
    baseline_is_population: ClassVar[bool] = False  # measured on persons outside the release

    def bound_values(self, values: Floats) -> tuple[float, float]:
        """Return what the value of one person can be, at least and at most."""
        return self.bounds

    def format_value(self, value: float) -> str:
        """Return a value as a sentence shows it."""
        return percent(value)

    def sentence(self, values: SentenceValues) -> str:
        """Return one sentence that states the value for a steward."""
        original = values.original
        return self.template.format(
            story=values.story,
            value=self.format_value(values.value),
            baseline=self.format_value(values.baseline),
            epsilon=f"{100 * values.epsilon:g} %",
            original=""
            if original is None
            else self.original_phrase.format(self.format_value(original)),
        ).strip()


class ReconstructMetric(_Metric, Protocol):
    """Distance of an attacker's table from the original, on any subset of the records.

    ``ranges`` are the column ranges of the complete table. The baseline is the same measure on one
    constant guess for all records. ``each`` returns one number for each record, NaN to leave it
    out. A metric that is no mean of them has a ``measure`` and an ``interval`` of its own, of which
    the latter is that of the mean over several ``tables`` (records and estimates of each).
    """

    goal: ClassVar[Literal["reconstruct"]] = "reconstruct"
    interval_method: ClassVar[IntervalMethod] = "mean"

    def each(self, X: Floats, X_hat: Floats, ranges: Floats, epsilon: float) -> Floats:
        raise Defect(f"{self.name} is no mean over records.")

    def measure(self, X: Floats, X_hat: Floats, ranges: Floats, epsilon: float) -> float:
        """Return the mean over the records."""
        return average(self.each(X, X_hat, ranges, epsilon))

    def interval(
        self, tables: Sequence[tuple[Floats, Floats]], ranges: Floats, level: float
    ) -> tuple[float, float]:
        raise Defect(f"{self.name} has no interval of its own.")


class NormMetric(_Metric, Protocol):
    """Error of the estimated record lengths; the baseline is one length for all records."""

    goal: ClassVar[Literal["norms"]] = "norms"
    interval_method: ClassVar[IntervalMethod] = "mean"

    def each(self, length: Floats, length_hat: Floats, epsilon: float) -> Floats: ...
    def measure(self, length: Floats, length_hat: Floats, epsilon: float) -> float:
        """Return the mean over the records."""
        return average(self.each(length, length_hat, epsilon))


class LinkMetric(_Metric, Protocol):
    """Share of targets that were found.

    ``link`` is the record that each target was linked to, -1 for none; ``truth`` is the right one.
    """

    goal: ClassVar[Literal["link"]] = "link"
    interval_method: ClassVar[IntervalMethod] = "mean"

    def each(self, link: Ints, truth: Ints) -> Floats: ...
    def measure(self, link: Ints, truth: Ints) -> float:
        """Return the mean over the targets."""
        return average(self.each(link, truth))

    def baseline(self, n: int) -> float:
        """Return the value for rows picked at random out of ``n``."""
        return 1.0 / n


class PairMetric(_Metric, Protocol):
    """Share of persons whose two partial records were linked; the baseline is non-members."""

    goal: ClassVar[Literal["pair"]] = "pair"
    interval_method: ClassVar[IntervalMethod] = "mean"

    def each(self, link: Ints, truth: Ints) -> Floats: ...
    def measure(self, link: Ints, truth: Ints) -> float:
        """Return the mean over the persons."""
        return average(self.each(link, truth))


class SourceMetric(_Metric, Protocol):
    """Success in naming the record behind a row: guesses, best first, and probabilities."""

    goal: ClassVar[Literal["source"]] = "source"
    interval_method: ClassVar[IntervalMethod] = "mean"

    def each(self, guess: Ints, probability: Floats, truth: Ints) -> Floats: ...
    def measure(self, guess: Ints, probability: Floats, truth: Ints) -> float:
        """Return the mean over the rows."""
        return min(self.bounds[1], average(self.each(guess, probability, truth)))

    def baseline(self, n: int) -> float:
        """Return the value without the release: each of ``n`` records is equally likely."""
        return 1.0 / n


class MemberMetric(_Metric, Protocol):
    """Success in distinguishing members of the release from non-members.

    ``interval`` is that of the mean over several ``trials`` (scores and membership of each), which
    count as ``members`` and ``others`` different persons.
    """

    goal: ClassVar[Literal["member"]] = "member"
    interval_method: ClassVar[IntervalMethod] = "own"

    def measure(self, score: Floats, is_member: Bools) -> float: ...
    def baseline(self, is_member: Bools) -> float: ...
    def interval(
        self, trials: Sequence[tuple[Floats, Bools]], members: int, others: int, level: float
    ) -> tuple[float, float]: ...


class InferMetric(_Metric, Protocol):
    """Success in inferring columns of a person from the other columns.

    ``guess`` and ``truth`` hold numeric columns first, then codes. The baseline is the same
    measure on persons who are not in the release. ``each`` may return several numbers for each
    person, in columns.
    """

    goal: ClassVar[Literal["infer"]] = "infer"
    interval_method: ClassVar[IntervalMethod] = "mean"
    ceiling: ClassVar[float] = 0.3
    baseline_is_population: ClassVar[bool] = True

    def each(self, guess: Floats, truth: Floats, schema: Schema, epsilon: float) -> Floats: ...
    def measure(self, guess: Floats, truth: Floats, schema: Schema, epsilon: float) -> float:
        """Return the mean over the persons."""
        return average(self.each(guess, truth, schema, epsilon))


class SingleOutMetric(_Metric, Protocol):
    """Share of statements that hold for exactly one person in a table.

    The baseline is the share expected by chance among as many persons: the mean of ``chances``,
    which are estimated on persons outside the release.
    """

    goal: ClassVar[Literal["single_out"]] = "single_out"
    interval_method: ClassVar[IntervalMethod] = "mean"
    ceiling: ClassVar[float] = 0.3

    def each(self, statements: Floats, table: Floats) -> Floats: ...
    def chances(self, statements: Floats, members: Floats, others: Floats) -> Floats: ...
    def measure(self, statements: Floats, table: Floats) -> float:
        """Return the mean over the statements."""
        return average(self.each(statements, table))

    def baseline(self, statements: Floats, members: Floats, others: Floats) -> float:
        """Return the share expected by chance."""
        return min(self.bounds[1], average(self.chances(statements, members, others)))


class ReleaseMetric(_Metric, Protocol):
    """Quality of a release, measured on one draw of it."""

    goal: ClassVar[Literal["release"]] = "release"
    interval_method: ClassVar[IntervalMethod] = "jackknife"
    kind: ClassVar[Kind] = "utility"
    better: ClassVar[Better] = "up"
    max_records: ClassVar[int] = sys.maxsize  # more are sampled
    needs_label: ClassVar[bool] = False
    on_original: ClassVar[float | None] = None  # the value there; None: it is measured

    def measure(self, comparison: ReleaseComparison) -> Measurement: ...
    def baseline(self, comparison: ReleaseComparison) -> float:
        """Return the value for a recipient who ignores the release."""
        ...

    def original(self, comparison: ReleaseComparison) -> float:
        """Return the value on the original table."""
        if self.on_original is not None:
            return self.on_original
        return self.measure(comparison.original).value


class ChangeMetric(_Metric, Protocol):
    """Change of a miner's errors by the release: above 0, more records are wrong than before."""

    goal: ClassVar[Literal["change"]] = "change"
    interval_method: ClassVar[IntervalMethod] = "mean"
    kind: ClassVar[Kind] = "utility"

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
