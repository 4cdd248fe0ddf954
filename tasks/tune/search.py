"""Run a tune: measure settings round by round, and choose among those that are left."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from ppdm_core.audit.runner import Attempt
from ppdm_core.model.errors import BadInput
from ppdm_core.model.policy import Policy
from ppdm_core.tuning.choice import choose_setting, order_trials
from ppdm_core.tuning.halving import MAX_FINALISTS, Round, rank_trials
from ppdm_core.tuning.setting import Setting
from ppdm_core.tuning.trade_offs import list_trade_offs
from ppdm_core.tuning.trial import Trial
from ppdm_core.tuning.utility import Utility
from tasks.audit.cost_estimate import compute_cost, format_time, measure_slowness, weigh_audit
from tasks.progress import Step, log_progress, start_step
from tasks.tune.plan import TunePlan, tunes_folder
from tasks.tune.progress_file import ProgressFile
from tasks.tune.result import TuneResult
from tasks.tune.trial_question import Measured, TrialQuestion, list_trial_audits
from tasks.tune.workers import Workers


class Search:
    """One tune in progress."""

    def __init__(self, plan: TunePlan, on_share: Callable[[float], None]) -> None:
        self.plan, self.on_share = plan, on_share
        folder = tunes_folder(Path(plan.context.home))
        self.file = ProgressFile(folder / f"{plan.context.dataset}-{plan.identity[:16]}.jsonl")
        self.done = {(one.setting.digest, one.round): one for one in self.file.read()}
        self.costs = [estimate_round(plan, each) for each in plan.rounds]
        self.expected = self.estimate_seconds()
        self.spent = 0.0
        self.unmeasured = ""  # why the utility does not apply to a setting

    def run(self) -> TuneResult:
        """Return the result; finished trials of an earlier process are not measured again."""
        start_step(Step.TUNE)
        start = time.monotonic()
        plan = self.plan
        with Workers() as workers:
            self.announce(workers.count)
            ranked = self.run_rounds(workers)
        choice = choose_setting(self.list_finalists(), plan.utility, plan.context.policy.limits)
        limits = plan.context.policy.limits
        return TuneResult(
            dataset=plan.context.dataset,
            data=plan.records.data,
            source=plan.source_digest,
            policy=plan.context.policy.digest,
            utility=plan.utility,
            records=plan.total,
            sample=plan.records.rows.n,
            tried=len(plan.settings),
            tried_in_all=plan.tried,
            trials=tuple(order_trials(ranked, plan.utility)),
            limits={name: limit.value for name, limit in limits.items()},
            chosen=choice.trial.setting.digest if choice else "",
            has_margin=choice.has_margin if choice else False,
            trade_offs=list_trade_offs(ranked, plan.utility, limits),
            seconds=time.monotonic() - start,
        )

    def announce(self, processes: int) -> None:
        """Report what will be measured and about how long it takes."""
        plan = self.plan
        left = f"; {len(self.done)} trials are done already" if self.done else ""
        seconds = self.expected / processes
        log_progress(
            f"{len(plan.settings)} settings in {len(plan.rounds)} rounds on up to "
            f"{plan.records.rows.n:,} records: about {format_time(seconds)}, give or take a factor "
            f"of three{left}",
            0.0,
            seconds,
        )

    def run_rounds(self, workers: Workers) -> list[Trial]:
        """Return the last trial of every setting, the most promising first."""
        going: list[Setting] = list(self.plan.settings)
        for each in self.plan.rounds:
            batch = going[: each.settings]
            self.run_round(workers, each, batch)
            ranked = self.rank(each.number)
            going = [trial.setting for trial in ranked if trial.setting in batch]
            if each.number == 1:
                self.check_measured()
        last = self.plan.rounds[-1]
        self.add_finalists(workers, last)
        return self.rank()

    def add_finalists(self, workers: Workers, last: Round) -> None:
        """Measure further settings in the last round while none passes with a margin."""
        limits = self.plan.context.policy.limits
        while len(self.list_finalists()) < MAX_FINALISTS:
            choice = choose_setting(self.list_finalists(), self.plan.utility, limits)
            measured = {trial.setting.digest for trial in self.list_finalists()}
            others = [each for each in self.rank() if each.setting.digest not in measured]
            if (choice and choice.has_margin) or not others:
                return
            room = MAX_FINALISTS - len(measured)
            self.run_round(workers, last, [each.setting for each in others[: min(2, room)]])

    def list_finalists(self) -> list[Trial]:
        """Return the trials of the last round."""
        last = self.plan.rounds[-1].number
        return [trial for (_, number), trial in self.done.items() if number == last]

    def rank(self, number: int | None = None) -> list[Trial]:
        """Return the last trial of every setting that was measured, the most promising first.

        ``number``: up to this round, so that a continued tune goes the same way.
        """
        known = [one for one in self.done.values() if number is None or one.round <= number]
        latest: dict[str, Trial] = {}
        for trial in sorted(known, key=lambda one: one.round):
            latest[trial.setting.digest] = trial
        order = [latest[each.digest] for each in self.plan.settings if each.digest in latest]
        limits, sample = self.plan.context.policy.limits, self.plan.records.rows.n
        return rank_trials(order, self.plan.utility, limits, sample)

    def run_round(self, workers: Workers, each: Round, settings: Sequence[Setting]) -> None:
        """Measure settings on the draws of a round, as far as that was not done before."""
        open_ = [one for one in settings if (one.digest, each.number) not in self.done]
        started = {one.digest: time.monotonic() for one in open_}
        records = self.plan.select_records(each.records)

        def make_question(setting: Setting) -> TrialQuestion:
            started[setting.digest] = time.monotonic()
            context = replace(
                self.plan.context, method=setting.method, parameters=dict(setting.parameters)
            )
            return TrialQuestion(
                context=context,
                records=records,
                state=self.plan.state,
                noise=self.plan.noise,
                policy=each.policy,
                scope=(self.plan.records.data, str(each.number), self.plan.code_version),
                utilities=self.plan.utility.metrics,
            )

        self.report(each, len(settings) - len(open_), len(settings))
        limit = each.policy.time_limit * count_audits(each.policy, self.plan.utility)
        answers = workers.ask_all(open_, make_question, limit)
        for count, (setting, reply) in enumerate(answers, start=1):
            seconds = time.monotonic() - started[setting.digest]
            trial = self.make_trial(setting, each, records.rows.n, reply, seconds)
            self.file.append(trial)
            self.done[setting.digest, each.number] = trial
            self.spent += self.costs[each.number - 1]
            self.report(each, len(settings) - len(open_) + count, len(settings))

    def estimate_seconds(self) -> float:
        """Return about how many seconds the trials take that are not done, one at a time."""
        counts = Counter(number for _, number in self.done)
        pairs = zip(self.costs, self.plan.rounds, strict=True)
        return sum(cost * max(0, each.settings - counts[each.number]) for cost, each in pairs)

    def report(self, each: Round, done: int, count: int) -> None:
        """Report progress; no figure is shown before the end."""
        share = min(0.99, self.spent / self.expected) if self.expected else 0.0
        self.on_share(share)
        text = f"round {each.number} of {len(self.plan.rounds)}: {done} of {count} settings"
        log_progress(f"{text} on {each.records:,} records", share)

    def make_trial(
        self,
        setting: Setting,
        each: Round,
        records: int,
        reply: Attempt[Measured],
        seconds: float,
    ) -> Trial:
        """Return the trial of a reply; a process that died or hung is a setting that failed."""
        if reply.value is None:
            why = f"It could not be measured ({reply.error or 'skipped'})."
            return Trial(setting, each.number, records, why_not=why, seconds=seconds)
        found = reply.value
        self.unmeasured = self.unmeasured or found.unmeasured
        return Trial(
            setting=setting,
            round=each.number,
            records=records,
            scores=found.scores,
            findings=found.findings,
            guarantee=found.guarantee,
            why_not=found.why_not,
            seconds=seconds,
        )

    def check_measured(self) -> None:
        """Raise BadInput if nothing could be measured, or the utility applies to no setting."""
        trials, utility = list(self.done.values()), self.plan.utility
        if all(trial.why_not for trial in trials):
            raise BadInput(
                f"No setting can be measured: {trials[0].why_not}",
                remedy="See what a release would do: ppdm check FILE",
            )
        if all(utility.compute(trial.scores) is None for trial in trials):
            why = self.unmeasured or "it could not be measured."
            raise BadInput(
                f"The utility does not apply to these settings: {why}",
                remedy="Name another --utility, or other --methods.",
            )


def estimate_round(plan: TunePlan, each: Round) -> float:
    """Return about how many seconds one setting takes in a round."""
    schema = plan.records.rows.schema
    d = max(1, len(schema.numeric) + len(schema.categorical))
    policy = each.policy
    work = sum(map(weigh_audit, list_trial_audits(policy, plan.utility.metrics)))
    draws = policy.shadow_draws + policy.splits
    seconds, _ = compute_cost((each.records, d), draws, work, policy, get_slowness(d))
    return seconds if math.isfinite(seconds) else 1.0


def count_audits(policy: Policy, utility: Utility) -> int:
    """Return how many audits a trial runs; the time limit of a policy is for each of them."""
    return len(list_trial_audits(policy, utility.metrics))


SLOWNESS: dict[int, float] = {}  # of this machine, by columns


def get_slowness(d: int) -> float:
    """Return how slow this machine is, measured once."""
    if d not in SLOWNESS:
        SLOWNESS[d] = measure_slowness(d)
    return SLOWNESS[d]
