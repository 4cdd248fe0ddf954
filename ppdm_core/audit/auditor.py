"""One audit: the scores of attacks and metrics on some draws of one table."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property, partial

from ppdm_core.attacks import ATTACKS, Attack
from ppdm_core.audit.attack_runs import AttackRuns
from ppdm_core.audit.certifiable import count_judged_scores
from ppdm_core.audit.draws import OriginalTable
from ppdm_core.audit.evaluators import EVALUATORS
from ppdm_core.audit.label_risk import score_label
from ppdm_core.audit.runner import AuditResult, attempt
from ppdm_core.audit.scores import Figures, make_score
from ppdm_core.audit.utility import compare, measure_release
from ppdm_core.metrics import METRICS, AttackMetric, Metric, ReleaseComparison
from ppdm_core.model.arrays import Ints
from ppdm_core.model.attacker import SUREST_SHARES, Goal
from ppdm_core.model.errors import NotApplicable
from ppdm_core.model.policy import LABEL
from ppdm_core.model.reasons import Reason
from ppdm_core.model.score import Score
from ppdm_core.numerics.intervals import find_isolated_tenth

MIN_CERTIFIED_PERSONS = 100  # a limit on fewer of the persons can fail; a PASS does not need it
MAX_GROUP_SHARE = 0.1  # of the persons, in a group of which statements are made
SCENARIO_STORIES = {
    "partial": " Here the attacker knows only half of the columns.",
    "leaked": " Here the key has leaked.",
    "half": " Here the rows of half of the persons are recognised.",
    "surest": " Here only the tenth of the persons counts that the attacker is surest of.",
    "few": " Here only the one person in fifty counts that the attacker is surest of.",
    "left": " Here the attacker looks for persons who left, among as many rows as were removed.",
}
SCENARIO_TITLES = {  # in a line of a plot
    "partial": "knows half of the columns",
    "leaked": "knows the leaked key",
    "half": "recognises half of the rows",
    "left": "looks for persons who left",
}
PART_TITLES = {"surest": "surest tenth", "few": "surest fiftieth"}  # of the persons


class Auditor(AttackRuns):
    """The scores of attacks and metrics on some draws of one table."""

    def run_one(self, name: str) -> AuditResult:
        """Run one audit and return what it ended in; it never raises."""
        return attempt(lambda: self.run(name))

    def run(self, name: str) -> tuple[Score, ...]:
        """Return all scores of one attack, of the label, or of a utility metric."""
        if name == LABEL:
            return (score_label(self.truth, self.draws[0]),)
        audited = ATTACKS.get(name) or METRICS[name]
        if not self.truth.schema.numeric and "categorical" not in audited.reads:
            raise NotApplicable(
                f"{name} works on numbers, and no numeric feature is released.",
                reason=Reason.NO_NUMERIC_COLUMN,
            )
        if name in ATTACKS:
            return self._run_attack(ATTACKS[name])
        metric = METRICS[name]
        if metric.goal != "release":
            raise NotApplicable(f"{name} is measured by attacks, not on its own.")
        measured = measure_release(metric, self.comparisons)
        return tuple(self._make_score(*each) for each in measured)

    @cached_property
    def comparisons(self) -> list[ReleaseComparison]:
        """Each draw compared with the original table."""
        return compare(self.truth, self.draws, partial(self.rng, "utility"))

    @cached_property
    def isolated(self) -> Ints:
        """The most isolated tenth of the records."""
        return find_isolated_tenth(self.truth.X, self.rng("isolated"))

    def find_truth(self, goal: Goal) -> OriginalTable:
        """Return the records that estimates for this goal are about."""
        return self.truth

    def describe_attacker(self, attack: Attack) -> str:
        """Return the sentence that says who the attacker is."""
        return attack.story

    def _run_attack(self, attack: Attack) -> tuple[Score, ...]:
        outcomes = self.run_trials(attack)
        scenarios = dict.fromkeys(
            name for one in outcomes for name in ("", *one.scenarios) if one.estimates(name)
        )
        found: list[Score] = []
        last: NotApplicable | None = None
        for scenario in scenarios:
            for metric in METRICS.values():
                if metric.goal != attack.goal:
                    continue
                try:
                    found.append(self.score_attack(attack, metric, scenario))
                except NotApplicable as why:  # of this metric alone
                    last = why
        if not found and last is not None:
            raise last
        return tuple(found)

    def score_attack(self, attack: Attack, metric: AttackMetric, scenario: str = "") -> Score:
        """Return the score of one metric of an attack."""
        truth, outcomes = self.find_truth(attack.goal), self.run_trials(attack)
        epsilon = self.policy.attacker.epsilon
        evaluator = EVALUATORS[attack.goal](
            metric, truth, outcomes, epsilon, scenario, self.is_label_column
        )
        figures = evaluator.make_figures(attack.name, self.isolated, self.truth.groups)
        story = self.describe_attacker(attack) + SCENARIO_STORIES.get(scenario, "")
        score = self._make_score(metric, name_score(attack, metric, scenario), figures, story)
        group = count_group(attack, scenario, score, self.truth.record_count)
        is_certifiable = group is None or group >= MIN_CERTIFIED_PERSONS
        return replace(score, is_certifiable=is_certifiable)

    def _make_score(self, metric: Metric, name: str, figures: Figures, story: str = "") -> Score:
        return make_score(
            metric,
            name,
            figures,
            level=self.policy.level,
            judged=count_judged_scores(self.policy),
            tried=self.policy.tried,
            rng=self.rng("jackknife", name),
            story=story.format(k=min(self.policy.attacker.known_records, len(self.truth.X) - 2)),
            epsilon=self.policy.attacker.epsilon,
        )


def count_group(attack: Attack, scenario: str, score: Score, n: int) -> float | None:
    """Return how many persons a score is about, if it is about a small group of ``n``.

    That is the group of a scenario, or the persons that statements can single out, if a release
    whose rows hardly differ allows only a few statements.
    """
    share = SUREST_SHARES.get(scenario)
    if share is not None:
        return share * n
    is_few = attack.goal == "single_out" and score.n <= MAX_GROUP_SHARE * n
    return score.n if is_few else None


def name_score(attack: Attack, metric: AttackMetric, scenario: str) -> str:
    """Return the name of a score; "" is the scenario of the policy."""
    return ".".join(filter(None, (attack.name, scenario, metric.name)))
