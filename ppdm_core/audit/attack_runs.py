"""Run attacks on some draws of one table, and hand the best reconstructions to other attacks.

Attacks that tell persons in the release from persons outside it run on halves: draws of a random
half of the records, with the other half as the control.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ppdm_core.attacks import ATTACKS, Attack, ExplainsError
from ppdm_core.audit.draws import EarlierReleases, OriginalTable, ReleaseDraw, freeze
from ppdm_core.audit.evaluators import EVALUATORS, GOALS_WITH_OUTSIDERS
from ppdm_core.audit.label_risk import has_small_class
from ppdm_core.audit.runner import choose_audits
from ppdm_core.audit.simulation import (
    AttackTrial,
    TrialOutcome,
    choose_half_participants,
    choose_participants,
)
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.attacker import AttackerView, Estimate, MappedRows, RowMap
from ppdm_core.model.errors import NotApplicable
from ppdm_core.model.policy import Policy
from ppdm_core.model.reasons import Reason

MAX_RECONSTRUCTIONS = 4  # the best ones, which linkers and other attacks build on
MAX_HALF_RECONSTRUCTIONS = 2  # there are more halves than draws
MIN_RELATIVE_SPREAD = 1e-9  # of a column's range; estimates that differ by less are one value


@dataclass(frozen=True, eq=False)
class BestCandidate:
    """The candidate of a reconstruction with the smallest error, on every draw."""

    name: str
    error: float
    outcomes: list[TrialOutcome]


class AttackRuns:
    """The attacks on some draws of one table.

    What the last attack found is cached, and the best candidate of each reconstruction: all
    candidates of all attacks do not fit into memory.
    """

    def __init__(
        self,
        truth: OriginalTable,
        draws: Sequence[ReleaseDraw],
        policy: Policy,
        seed: bytes,
        halves: Sequence[ReleaseDraw] = (),
        earlier: EarlierReleases | None = None,
    ) -> None:
        if not draws or len(truth.X) == 0:
            raise NotApplicable("There is nothing to audit.", reason=Reason.TOO_FEW_RECORDS)
        self.truth, self.policy, self.seed = truth, policy, seed
        self.draws, self.halves, self.earlier = tuple(draws), tuple(halves), earlier
        self._last: tuple[tuple[str, bool], list[TrialOutcome]] | None = None
        self._best: dict[str, BestCandidate | None] = {}  # by attack; None: nothing was found
        self._best_halves: dict[str, list[TrialOutcome]] = {}

    def rng(self, *name: object) -> np.random.Generator:
        """Return the generator of a purpose; the same name gives the same numbers."""
        text = "/".join(map(str, name)).encode()
        digest = hashlib.blake2b(text, key=self.seed[:64], digest_size=16).digest()
        return np.random.default_rng(int.from_bytes(digest, "little"))

    @cached_property
    def is_label_column(self) -> bool:
        """Whether the label counts as a released column: then no baseline includes what it gives.

        A small class is as good as a value of its own.
        """
        return has_small_class(self.truth, self.draws[0])

    @cached_property
    def trials(self) -> list[AttackTrial]:
        """One trial per draw, with every record in the release."""
        n, d = self.truth.X.shape
        participants = choose_participants(
            n, d, self.policy.attacker, self.rng("people"), self.truth.total
        )
        trials = [
            AttackTrial.create(self.truth, draw, participants, self.rng("shuffle", number))
            for number, draw in enumerate(self.draws)
        ]
        return [replace(trial, earlier=self.earlier) for trial in trials]

    @cached_property
    def half_trials(self) -> list[AttackTrial]:
        """One trial per half."""
        n, d = self.truth.X.shape
        trials = []
        for number, draw in enumerate(self.halves):
            assert draw.members is not None
            rng = self.rng("split", number)
            participants = choose_half_participants(
                n, d, draw.members, self.policy.attacker, rng, self.truth.total
            )
            trials.append(AttackTrial.create(self.truth, draw, participants, rng))
        return trials

    def run_trials(self, attack: Attack, *, on_halves: bool | None = None) -> list[TrialOutcome]:
        """Run an attack on all draws, or on all halves; ``None``: where its goal is measured."""
        if on_halves is None:
            on_halves = attack.goal in GOALS_WITH_OUTSIDERS
        key = (attack.name, on_halves)
        if self._last is None or self._last[0] != key:
            trials = self.half_trials if on_halves else self.trials
            if not trials:
                raise NotApplicable(
                    f"The attack {attack.name} needs persons outside the release to compare with.",
                    reason=Reason.NO_CONTROL,
                )
            outcomes = [
                self._run_trial(attack, i, each, on_halves) for i, each in enumerate(trials)
            ]
            self._last = key, outcomes
            if attack.goal == "reconstruct" and not on_halves:
                self._best.setdefault(attack.name, self._find_best_candidate(outcomes))
        return self._last[1]

    def build_view(self, attack: Attack, trial: AttackTrial) -> AttackerView:
        """Return what an attack sees of a draw."""
        return trial.build_view(self.policy.attacker.epsilon, self.policy.effort)

    def _run_trial(
        self, attack: Attack, number: int, trial: AttackTrial, on_halves: bool
    ) -> TrialOutcome:
        view = self.build_view(attack, trial)
        if self.is_label_column and EVALUATORS[attack.goal].hides_control_labels:
            view = trial.hide_control_labels(view)
        if attack.needs & {"earlier_releases", "arrival_batches"}:
            view = trial.add_earlier_releases(view)
        if "reconstructions" in attack.needs or attack.goal == "link":
            view = self._add_reconstructions(
                view, number, on_halves, knows_partners="partner_rows" in attack.needs
            )
        purpose = (attack.name, number, *(["split"] if on_halves else []))
        estimate = attack.attack(view, self.rng(*purpose))
        if attack.runs_half_known and view.known is not None and not on_halves:
            half = self._run_half_known(attack, trial, view, purpose)
            estimate = replace(estimate, scenarios={**estimate.scenarios, "half": half})
        if isinstance(attack, ExplainsError) and trial.draw.partners is None:
            X = self.truth.X[trial.draw.records[trial.shuffle]]
            estimate = replace(estimate, notes={**estimate.notes, **attack.explain(view, X)})
        if on_halves and attack.goal == "reconstruct":  # only the best candidate is used again
            name = dict(self._best_reconstructions)[attack.name]
            if name not in estimate.candidates:  # a half may be too small for it
                raise NotApplicable(
                    f"The attack {attack.name} has too few records in a half.",
                    reason=Reason.TOO_FEW_RECORDS,
                )
            kept = estimate.candidates
            kept = kept.keep(name) if isinstance(kept, MappedRows) else {name: kept[name]}
            estimate = Estimate(kept)
        outcome = trial.make_outcome(attack.goal, estimate)
        return replace(outcome, knows_partners="partner_rows" in attack.needs)

    def build_linkage_view(self, number: int) -> AttackerView:
        """Return what a linking attacker sees of a draw of all records."""
        trial = self.trials[number]
        view = trial.build_view(self.policy.attacker.epsilon, self.policy.effort)
        return self._add_reconstructions(view, number, on_halves=False)

    def _run_half_known(
        self, attack: Attack, trial: AttackTrial, view: AttackerView, purpose: Sequence[object]
    ) -> dict[str, Ints]:
        """Return the links of all targets, each found by an attacker who knows the other half."""
        merged: dict[str, Ints] = {}
        assert view.targets is not None
        for number, (targets, half_view) in enumerate(trial.build_half_known_views(view)):
            found = attack.attack(half_view, self.rng(*purpose, "half", number)).candidates
            for name, links in found.items():
                empty = np.full(view.targets.n, -1, dtype=np.int64)
                merged.setdefault(name, empty)[targets] = links
        return merged

    def _add_reconstructions(
        self, view: AttackerView, number: int, on_halves: bool, *, knows_partners: bool = False
    ) -> AttackerView:
        """Return the view with the best estimates of the original columns.

        Of a large release, these are estimates that can be made of all its rows. Those that other
        sites make with what they know are left to attacks by these sites (``knows_partners``).
        """
        found: dict[str, Floats] = {}
        maps: dict[str, RowMap] = {}
        best = self._best_on_halves if on_halves else self._best_reconstructions
        if not knows_partners:
            best = [each for each in best if "partner_rows" not in ATTACKS[each[0]].needs]
        most = MAX_HALF_RECONSTRUCTIONS if on_halves else MAX_RECONSTRUCTIONS
        for attack, name in best if view.further is not None else best[:most]:
            try:
                outcomes = self._list_best_outcomes(attack, on_halves)
            except NotApplicable:  # for example too few records in a half
                continue
            estimate = outcomes[number].estimate
            assert estimate is not None
            candidates = estimate.candidates
            if isinstance(candidates, MappedRows) and candidates.is_fast:
                maps[f"{attack}/{name}"] = candidates.maps[name]
            elif view.further is not None:
                continue
            found[f"{attack}/{name}"] = freeze(candidates[name])
            if len(found) == most:
                break
        return replace(view, reconstructions=found, reconstruct=maps)

    def _list_best_outcomes(self, attack: str, on_halves: bool) -> list[TrialOutcome]:
        """Return the best candidate of a reconstruction on all draws, or on all halves."""
        if on_halves:
            if attack not in self._best_halves:
                found = self.run_trials(ATTACKS[attack], on_halves=True)
                self._best_halves[attack] = found
            return self._best_halves[attack]
        best = self._best[attack]
        assert best is not None
        return best.outcomes

    @cached_property
    def _best_reconstructions(self) -> list[tuple[str, str]]:
        """The candidate of each attack with the smallest error, chosen with the truth."""
        if not self.truth.schema.numeric:
            return []
        errors, audits = {}, choose_audits(self.policy)
        for attack in ATTACKS.values():
            is_run = attack.name in audits or attack.in_every_audit
            if attack.goal != "reconstruct" or not is_run:
                continue
            try:
                if attack.name not in self._best:
                    self.run_trials(attack)
            except NotApplicable:
                continue
            best = self._best[attack.name]
            if best is not None:
                errors[attack.name, best.name] = best.error
        return sorted(errors, key=errors.__getitem__)

    def _find_best_candidate(self, outcomes: list[TrialOutcome]) -> BestCandidate | None:
        """Return the candidate with the smallest error; None if all are one value."""
        shared = set.intersection(*(set(one.candidates) for one in outcomes))
        means = {
            name: self.compute_error(outcomes, name)
            for name in outcomes[0].candidates
            if name in shared and self._differs_between_records(outcomes[0], name)
        }
        if not means:
            return None
        name = min(means, key=means.__getitem__)
        kept = [one.keep_candidate(name) for one in outcomes]
        return BestCandidate(name, means[name], kept)

    def _differs_between_records(self, outcome: TrialOutcome, name: str) -> bool:
        """Return whether a candidate is more than one value for all records not known before."""
        is_known = np.isin(outcome.records, outcome.participants.known)
        X_hat = outcome.candidates[name][~is_known]
        if not len(X_hat):
            return False
        return bool(np.any(np.ptp(X_hat, axis=0) > MIN_RELATIVE_SPREAD * self.truth.spread))

    @cached_property
    def _best_on_halves(self) -> list[tuple[str, str]]:
        """The best of these on the first half, where a sample holds no record of the release."""
        errors = {}
        for attack, name in self._best_reconstructions[:MAX_RECONSTRUCTIONS]:
            try:
                outcome = self._run_trial(ATTACKS[attack], 0, self.half_trials[0], on_halves=True)
            except NotApplicable:
                continue
            errors[attack, name] = self.compute_error([outcome], name)
        return sorted(errors, key=errors.__getitem__)

    def compute_error(self, outcomes: list[TrialOutcome], name: str) -> float:
        """Return the mean distance of a reconstruction from the original records."""
        found = []
        for one in outcomes:
            records = one.records
            rows = np.isin(records, one.participants.unknown)
            error = np.linalg.norm(self.truth.X[records[rows]] - one.candidates[name][rows], axis=1)
            if len(error):  # not all rows were made from records that the attacker knows
                found.append(float(np.mean(error)))
        return float(np.mean(found)) if found else np.inf
