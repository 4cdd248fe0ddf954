"""The audit of a release that some other tool made: two tables, and what else is known.

report = audit_tables(original, released, control=others)
outcome, findings = judge_tables(report, policy)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppdm_core.attacks import ATTACKS
from ppdm_core.audit.evaluators import OUTSIDERS_NEEDED
from ppdm_core.audit.runner import Auditor, audit_names, every_audit
from ppdm_core.audit.scores import Figures
from ppdm_core.audit.simulation import (
    MOST_TARGETS,
    Cast,
    Played,
    Stage,
    Truth,
    cast_all,
    cast_split,
    frozen,
)
from ppdm_core.gates.score_limits import is_sound
from ppdm_core.metrics import Metric
from ppdm_core.model.arrays import Floats
from ppdm_core.model.attacker import AttackerView, Goal
from ppdm_core.model.errors import BadInput, Defect, NotApplicable
from ppdm_core.model.policy import Attacker, Effort, Policy
from ppdm_core.model.score import AuditReport, Score
from ppdm_core.two_tables.comparison import Case, is_in, make_case
from ppdm_core.two_tables.tables import as_table, has_names, unnamed

SEED = b"ppdm audit"  # fixed, so that the same tables get the same verdict
# What of a release can be measured without its alignment.
SPREAD_ONLY = ("closest_record", "column_distance", "correlation_error")
NO_CONTROL = "Needs people who are not in the release (--control)."
NO_ALIGNMENT = "Scored by whose row is whose, which is not known here (--unaligned)."
NOT_ASKED = "The effort is quick, and the policy neither requires nor limits it."
IN_THE_OPEN = "Undoes a secret map, and here columns of the original are released."
OTHER_COLUMNS = "Reads values as they stand, and here no column of the original is released."
NOTHING_TO_PLAY = frozenset({IN_THE_OPEN, OTHER_COLUMNS})  # no gap: others play against the rest
METHOD_UNKNOWN = "Needs to know by which method the release was made."
ONE_RELEASE = "Needs several releases of the same people, and here is one."
# In the words of two files: no method stands behind them that publishes anything.
ALWAYS = {
    "correlation_filter": METHOD_UNKNOWN,
    "shrinkage": METHOD_UNKNOWN,
    "source_record": METHOD_UNKNOWN,
    "kernel_support": METHOD_UNKNOWN,
    "dapl_held_out": METHOD_UNKNOWN,
    "dapl_plug_in": METHOD_UNKNOWN,
    "release_averaging": ONE_RELEASE,
    "release_differencing": ONE_RELEASE,
}
STORIES = {"transform_inverse": "A recipient takes the released values as they stand."}
IF_COMMON = dict.fromkeys(("known_sample_pca", "known_sample_ica", "column_order"), IN_THE_OPEN)
IF_NOT = dict.fromkeys(("transform_inverse", "low_bits", "closest_record"), OTHER_COLUMNS)


def audit_tables(
    original: Any,
    released: Any,
    *,
    control: Any = None,
    known_records: Any = None,
    sample: Any = None,
    aligned: bool = True,
    label: str | None = None,
    policy: Policy | None = None,
    seed: bytes = SEED,
) -> AuditReport:
    """Attacks ``released``, knowing ``original``: arrays (n, d), data frames or dicts of columns.

    ``control``: people who are not in the release. ``known_records`` and ``sample``: how many the
    attacker knows (below 1: a share), or a table of them. Both are the policy's, if not given.
    """
    policy = policy or Policy(required=(), limits={})
    tables = [as_table("original", original), as_table("released", released)]
    if not has_names(original) and not has_names(released):
        tables = unnamed(*tables)
    case = make_case(
        *tables,
        control=None if control is None else as_table("control", control),
        known=None if is_number(known_records) else as_table("known_records", known_records),
        sample=None if is_number(sample) else as_table("sample", sample),
        aligned=aligned,
        label=label,
    )
    attacker = informed(
        policy.attacker,
        case,
        known_records if is_number(known_records) else None,
        sample if is_number(sample) else None,
    )
    return run_all(case, replace(policy, attacker=attacker), seed)


def run_all(case: Case, policy: Policy, seed: bytes) -> AuditReport:
    auditor = TablesAuditor(case, policy, seed)
    names, reasons = to_run(case, policy)
    scores: list[Score] = []
    skipped: dict[str, str] = {}
    failed: dict[str, str] = {}
    for name in names:
        try:
            found = auditor.run(name)
            scores.extend(found if all(map(is_sound, found)) else ())
            if not found or not all(map(is_sound, found)):
                failed[name] = "NotANumber" if found else "NoScore"
        except NotApplicable as why:
            skipped[name] = str(why)
        except (ArithmeticError, ValueError, LookupError, MemoryError, Defect) as error:
            failed[name] = type(error).__name__
    report = AuditReport(tuple(scores), skipped, failed, tuple(reasons), reasons=reasons)
    return replace(report, unread=case.unread, copied=case.copied, doubts=case.doubts)


def to_run(case: Case, policy: Policy) -> tuple[list[str], dict[str, str]]:
    """The audits that can be run, and why the others cannot."""
    asked, reasons = audit_names(policy), {}
    for name in every_audit():
        goal = ATTACKS[name].goal if name in ATTACKS else None
        if goal in OUTSIDERS_NEEDED and case.everybody is None:
            reasons[name] = NO_CONTROL
        elif not case.aligned and goal not in OUTSIDERS_NEEDED and name not in SPREAD_ONLY:
            reasons[name] = NO_ALIGNMENT
        elif name not in asked:
            reasons[name] = NOT_ASKED
    return [name for name in every_audit() if name not in reasons], reasons


def informed(
    attacker: Attacker, case: Case, known: float | None = None, sample: float | None = None
) -> Attacker:
    """The policy's attacker with what was said on the spot; somebody must be left to attack."""
    n = len(case.truth.X)
    if known is not None:
        attacker = replace(attacker, known_records=round(known))
    if sample is not None:
        attacker = replace(attacker, sample_share=sample if sample < 1 else sample / n)
    if case.known is not None:
        attacker = replace(attacker, known_records=len(case.known))
    if case.sample is not None:
        attacker = replace(attacker, sample_share=0.0)
    told = attacker.known_records + attacker.sample_share * n + np.sum(in_the_sample(case))
    is_said = any(each is not None for each in (known, sample, case.known, case.sample))
    if min(attacker.known_records, attacker.sample_share) < 0 or (is_said and told > n - 2):
        raise BadInput(
            f"The attacker cannot know that many of the {n:,} records: nobody is left to attack.",
            remedy="Name fewer known records or a smaller sample.",
        )
    return attacker


def in_the_sample(case: Case) -> NDArray[np.bool_]:
    """Which originals somebody handed out; a drawn sample is counted elsewhere."""
    if case.sample is None:
        return np.zeros(len(case.truth.X), dtype=np.bool_)
    return is_in(case.truth.X, case.sample)


@dataclass(frozen=True, eq=False)
class TableStage(Stage):
    """What a tool released beside the numbers: its own labels, in its own order."""

    case: Case | None = None

    def view(self, epsilon: float, effort: Effort) -> AttackerView:
        view, case = super().view(epsilon, effort), self.case
        assert case is not None
        given = view.sample if case.sample is None else frozen(case.sample)
        return replace(view, label=frozen(case.label[self.shuffle]), sample=given)


class TablesAuditor(Auditor):
    """One release, and people outside it if there are any."""

    def __init__(self, case: Case, policy: Policy, seed: bytes) -> None:
        splits = () if case.everybody is None else (case.draw,)
        super().__init__(case.truth, (case.draw,), policy, seed, splits)
        self.case = case

    def run(self, name: str) -> tuple[Score, ...]:
        try:
            return super().run(name)
        except NotApplicable as why:
            words = ALWAYS | (IF_COMMON if self.case.is_common else IF_NOT)
            raise NotApplicable(words.get(name, str(why))) from None

    def _scored(self, metric: Metric, name: str, figures: Figures, story: str = "") -> Score:
        return super()._scored(metric, name, figures, STORIES.get(name.split(".")[0], story))

    @cached_property
    def stages(self) -> list[Stage]:
        n, d = self.truth.X.shape
        cast = self._told(cast_all(n, d, self.policy.attacker, self.rng("people")))
        targets = self.rng("targets").permutation(cast.unknown)[:MOST_TARGETS]
        cast = replace(cast, targets=targets, is_member=np.ones(len(targets), dtype=np.bool_))
        return [self._stage(self.truth, cast, "shuffle")]

    @cached_property
    def split_stages(self) -> list[Stage]:
        people, members = self.case.everybody, self.case.draw.members
        if people is None or members is None:
            return []
        n, d = people.X.shape
        cast = self._told(cast_split(n, d, members, self.policy.attacker, self.rng("split")))
        keep = ~cast.is_member | np.isin(cast.targets, cast.unknown)
        cast = replace(cast, targets=cast.targets[keep], is_member=cast.is_member[keep])
        return [self._stage(people, cast, "split shuffle")]

    def _told(self, cast: Cast) -> Cast:
        """Whoever is known by name, or is in the sample, is nobody's target."""
        known = cast.known if self.case.known is None else self.case.known
        told = np.concatenate([known, cast.sample, np.flatnonzero(in_the_sample(self.case))])
        unknown = np.setdiff1d(np.arange(len(self.truth.X)), told)
        return replace(cast, known=known, unknown=unknown)

    def _stage(self, truth: Truth, cast: Cast, order: str) -> Stage:
        rng, draw = self.rng(order), self.case.draw
        shuffle, right = rng.permutation(len(draw.Y)), rng.permutation(len(cast.targets))
        return TableStage(truth, draw, cast, shuffle, right, case=self.case)

    def truth_behind(self, goal: Goal) -> Truth:
        return (self.case.everybody or self.truth) if goal in OUTSIDERS_NEEDED else self.truth

    def error_of(self, played: list[Played], name: str) -> float:
        """Where nobody knows whose row is whose: how differently the columns are spread."""
        if self.case.aligned:
            return super().error_of(played, name)
        return float(np.mean([spread_gap(self.truth.X, one.candidates[name]) for one in played]))


def spread_gap(X: Floats, X_hat: Floats) -> float:
    levels = np.linspace(0.0, 1.0, 201)
    return float(np.mean(np.abs(np.quantile(X, levels, 0) - np.quantile(X_hat, levels, 0))))


def is_number(given: Any) -> bool:
    return given is None or isinstance(given, int | float | np.number)
