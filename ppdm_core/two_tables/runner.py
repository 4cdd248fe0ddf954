"""Audit a release that any other tool made: two tables, and what else is known.

report = audit_tables(original, released, control=others)
outcome, findings = judge_tables(report, policy)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppdm_core.attacks import ATTACKS, Attack
from ppdm_core.audit.auditor import Auditor
from ppdm_core.audit.draws import OriginalTable, freeze
from ppdm_core.audit.evaluators import GOALS_WITH_OUTSIDERS
from ppdm_core.audit.runner import AuditResult, choose_audits, list_audits, run_audit
from ppdm_core.audit.simulation import (
    MAX_TARGETS,
    AttackTrial,
    Participants,
    TrialOutcome,
    choose_half_participants,
    choose_participants,
)
from ppdm_core.metrics import METRICS
from ppdm_core.model.arrays import Floats
from ppdm_core.model.attacker import AttackerView, Goal
from ppdm_core.model.errors import BadInput
from ppdm_core.model.policy import LABEL, Attacker, Effort, Policy
from ppdm_core.model.reasons import Reason, Skip
from ppdm_core.model.score import AuditReport
from ppdm_core.two_tables.comparison import TableComparison, compare_tables, is_in
from ppdm_core.two_tables.tables import as_table, has_names, rename_if_unnamed

SEED = b"ppdm audit"  # fixed, so that the same tables get the same verdict
# Reasons whose own sentence suits two files better than that of an attack on a release.
FILE_REASONS = frozenset(
    {
        Reason.METHOD_UNKNOWN,
        Reason.SINGLE_RELEASE,
        Reason.COLUMNS_RELEASED,
        Reason.NO_COMMON_COLUMN,
    }
)


def audit_tables(
    original: Any,
    released: Any,
    *,
    control: Any = None,
    known_records: Any = None,
    sample: Any = None,
    aligned: bool | None = None,
    label: str | None = None,
    policy: Policy | None = None,
    seed: bytes = SEED,
) -> AuditReport:
    """Attack ``released``, knowing ``original``: arrays (n, d), data frames or dicts of columns.

    ``control``: persons who are not in the release. ``known_records`` and ``sample``: how many the
    attacker knows (below 1: a share), or a table of them. Both are the policy's, if not given.
    """
    auditor, names, not_run = prepare_audit(
        original,
        released,
        control=control,
        known_records=known_records,
        sample=sample,
        aligned=aligned,
        label=label,
        policy=policy,
        seed=seed,
    )
    return add_comparison(run_audit(auditor.run_one, names), auditor.comparison, not_run)


def prepare_audit(
    original: Any,
    released: Any,
    *,
    control: Any = None,
    known_records: Any = None,
    sample: Any = None,
    aligned: bool | None = None,
    label: str | None = None,
    policy: Policy | None = None,
    seed: bytes = SEED,
) -> tuple[TableAuditor, list[str], dict[str, Skip]]:
    """Return what ``audit_tables`` runs: the auditor, the audits, and why others are not run."""
    policy = policy or Policy(required=(), limits={})
    tables = [as_table("original", original), as_table("released", released)]
    if not has_names(original) and not has_names(released):
        tables = rename_if_unnamed(*tables)
    comparison = compare_tables(
        *tables,
        control=None if control is None else as_table("control", control),
        known=None
        if is_number_or_none(known_records)
        else as_table("known_records", known_records),
        sample=None if is_number_or_none(sample) else as_table("sample", sample),
        aligned=aligned,
        label=label,
    )
    attacker = inform_attacker(
        policy.attacker,
        comparison,
        known_records if is_number_or_none(known_records) else None,
        sample if is_number_or_none(sample) else None,
    )
    policy = replace(policy, attacker=attacker)
    return TableAuditor(comparison, policy, seed), *choose_table_audits(comparison, policy)


def add_comparison(
    report: AuditReport, comparison: TableComparison, not_run: dict[str, Skip]
) -> AuditReport:
    """Return the report with what is known of the two tables."""
    return replace(
        report,
        not_run=not_run,
        unread=comparison.unread,
        copied=comparison.copied,
        doubts=comparison.doubts,
        leaks=comparison.leaks,
    )


def choose_table_audits(
    comparison: TableComparison, policy: Policy
) -> tuple[list[str], dict[str, Skip]]:
    """Return the audits that can be run, and why the others cannot."""
    chosen, not_run = choose_audits(policy), {}
    for name in list_audits():
        goal = ATTACKS[name].goal if name in ATTACKS else None
        needs_alignment = name in ATTACKS or (name != LABEL and METRICS[name].needs_alignment)
        if goal in GOALS_WITH_OUTSIDERS and comparison.all_persons is None:
            not_run[name] = Skip(Reason.NO_CONTROL)
        elif (
            needs_alignment and goal not in GOALS_WITH_OUTSIDERS and not is_paired(name, comparison)
        ):
            not_run[name] = Skip(Reason.NO_ALIGNMENT)
        elif name not in chosen:
            not_run[name] = Skip(Reason.NOT_REQUESTED)
    return [name for name in list_audits() if name not in not_run], not_run


def is_paired(name: str, comparison: TableComparison) -> bool:
    """Return whether an audit may take row i for that of record i.

    Attacks and privacy metrics try it whenever the numbers of rows are equal; utility is measured
    only if it is so.
    """
    is_utility = name in METRICS and METRICS[name].kind == "utility"
    return comparison.is_declared_aligned if is_utility else comparison.aligned


def inform_attacker(
    attacker: Attacker,
    comparison: TableComparison,
    known: float | None = None,
    sample: float | None = None,
) -> Attacker:
    """Return the policy's attacker with the given knowledge; at least two targets must be left."""
    n = len(comparison.truth.X)
    if known is not None:
        attacker = replace(attacker, known_records=round(known))
    if sample is not None:
        attacker = replace(attacker, sample_share=sample if sample < 1 else sample / n)
    if comparison.known is not None:
        attacker = replace(attacker, known_records=len(comparison.known))
    if comparison.sample is not None:
        attacker = replace(attacker, sample_share=0.0)
    in_sample = np.sum(find_sampled(comparison))
    count = attacker.known_records + attacker.sample_share * n + in_sample
    is_given = any(
        each is not None for each in (known, sample, comparison.known, comparison.sample)
    )
    if min(attacker.known_records, attacker.sample_share) < 0 or (is_given and count > n - 2):
        raise BadInput(
            f"The attacker cannot know that many of the {n:,} records: none is left to attack.",
            remedy="Name fewer known records or a smaller sample.",
        )
    return attacker


def find_sampled(comparison: TableComparison) -> NDArray[np.bool_]:
    """Return which original records are in a sample that was given as a table."""
    if comparison.sample is None:
        return np.zeros(len(comparison.truth.X), dtype=np.bool_)
    return is_in(comparison.truth.X, comparison.sample)


@dataclass(frozen=True, eq=False)
class TableTrial(AttackTrial):
    """A trial with the given sample."""

    comparison: TableComparison | None = None

    def build_view(self, epsilon: float, effort: Effort) -> AttackerView:
        view, comparison = super().build_view(epsilon, effort), self.comparison
        assert comparison is not None
        sample = view.sample if comparison.sample is None else freeze(comparison.sample)
        return replace(view, sample=sample)


class TableAuditor(Auditor):
    """An audit of one released table, with persons outside it if there are any."""

    def __init__(self, comparison: TableComparison, policy: Policy, seed: bytes) -> None:
        halves = () if comparison.all_persons is None else (comparison.draw,)
        super().__init__(comparison.truth, (comparison.draw,), policy, seed, halves)
        self.comparison = comparison

    def run_one(self, name: str) -> AuditResult:
        result = super().run_one(name)
        if result.skip is not None and result.skip.reason in FILE_REASONS:
            return replace(result, skip=Skip(result.skip.reason))
        return result

    def describe_attacker(self, attack: Attack) -> str:
        return attack.file_story or attack.story

    @cached_property
    def trials(self) -> list[AttackTrial]:
        n, d = self.truth.X.shape
        participants = choose_participants(n, d, self.policy.attacker, self.rng("people"))
        participants = self._apply_knowledge(participants)
        targets = self.rng("targets").permutation(participants.unknown)[:MAX_TARGETS]
        is_member = np.ones(len(targets), dtype=np.bool_)
        participants = replace(participants, targets=targets, is_member=is_member)
        return [self._make_trial(self.truth, participants, "shuffle")]

    @cached_property
    def half_trials(self) -> list[AttackTrial]:
        persons, members = self.comparison.all_persons, self.comparison.draw.members
        if persons is None or members is None:
            return []
        n, d = persons.X.shape
        attacker, rng = self.policy.attacker, self.rng("split")
        roles = self._apply_knowledge(choose_half_participants(n, d, members, attacker, rng))
        keep = ~roles.is_member | np.isin(roles.targets, roles.unknown)
        roles = replace(roles, targets=roles.targets[keep], is_member=roles.is_member[keep])
        return [self._make_trial(persons, roles, "split shuffle")]

    def _apply_knowledge(self, participants: Participants) -> Participants:
        """Return participants without known or sampled records among the scored ones."""
        given = self.comparison.known
        known = participants.known if given is None else given
        sampled = np.flatnonzero(find_sampled(self.comparison))
        excluded = np.concatenate([known, participants.sample, sampled])
        unknown = np.setdiff1d(np.arange(len(self.truth.X)), excluded)
        return replace(participants, known=known, unknown=unknown)

    def _make_trial(
        self, truth: OriginalTable, participants: Participants, purpose: str
    ) -> AttackTrial:
        rng, draw = self.rng(purpose), self.comparison.draw
        shuffle = rng.permutation(len(draw.Y))
        right_order = rng.permutation(len(participants.targets))
        return TableTrial(
            truth, draw, participants, shuffle, right_order, comparison=self.comparison
        )

    def find_truth(self, goal: Goal) -> OriginalTable:
        is_outside = goal in GOALS_WITH_OUTSIDERS
        return (self.comparison.all_persons or self.truth) if is_outside else self.truth

    def compute_error(self, outcomes: list[TrialOutcome], name: str) -> float:
        """Return the mean error; without alignment, how far apart the columns' quantiles are."""
        if self.comparison.aligned:
            return super().compute_error(outcomes, name)
        X = self.truth.X
        return float(np.mean([compare_quantiles(X, one.candidates[name]) for one in outcomes]))


def compare_quantiles(X: Floats, X_hat: Floats) -> float:
    """Return the mean difference of the columns' quantiles."""
    levels = np.linspace(0.0, 1.0, 201)
    return float(np.mean(np.abs(np.quantile(X, levels, 0) - np.quantile(X_hat, levels, 0))))


def is_number_or_none(given: Any) -> bool:
    """Return whether a number or None was given in place of a table."""
    return given is None or isinstance(given, int | float | np.number)
