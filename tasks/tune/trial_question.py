"""The question to an attack process: how private and how useful is one setting?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ppdm_core.model.errors import BadInput
from ppdm_core.model.policy import LABEL, Policy
from ppdm_core.model.release import Guarantee
from ppdm_core.model.score import Score
from ppdm_core.model.verdict import Finding
from ppdm_core.numerics.noise import Noise
from tasks.context import ReleaseContext
from tasks.home_state import HomeState
from tasks.sanitize.next_release import ValidatedRecords


@dataclass(frozen=True)
class Measured:
    """What one setting gave."""

    scores: tuple[Score, ...] = ()
    findings: tuple[Finding, ...] = ()
    guarantee: Guarantee | None = None
    why_not: str = ""  # the method cannot release these records
    unmeasured: str = ""  # why a chosen utility does not apply


@dataclass(frozen=True, eq=False)
class TrialQuestion:
    """One setting on some records, with the draws of a round."""

    context: ReleaseContext  # with method and parameters of the setting
    records: ValidatedRecords
    state: HomeState
    noise: Noise  # of the tune: no verdict uses draws of it
    policy: Policy  # of the round
    scope: tuple[str, ...]
    utilities: tuple[str, ...]  # names of metrics

    def answer(self, auditor: Any) -> Measured:
        """Fit, draw, attack and judge; the records of the question are used, not an auditor."""
        try:
            return self.measure()
        except BadInput as error:  # its message holds no value
            return Measured(why_not=error.message)

    def measure(self) -> Measured:
        from ppdm_core.audit.runner import run_audit
        from ppdm_core.gates import GateInput, judge_settings
        from ppdm_core.tuning.trial_auditor import TrialAuditor
        from tasks.audit.sample_job import make_sample_job
        from tasks.sanitize.next_release import fit_release

        release = fit_release(self.context, self.records, self.state)
        records = release.split.released
        job = make_sample_job(self.context, release, records, self.noise, self.policy, self.scope)
        report = run_audit(
            job.make_auditor(TrialAuditor).run_one, list_trial_audits(self.policy, self.utilities)
        )
        guarantee = release.guarantee
        gate_input = GateInput(
            report=report,
            guarantee=guarantee,
            method=self.context.method,
            policy=self.policy,
            has_numbers=bool(job.shadows.shadows[0].public.columns),
            advice=release.sanitizer.advise(),
        )
        named = {*self.policy.limits, *self.utilities}
        skipped = [
            report.skipped[name].sentence for name in self.utilities if name in report.skipped
        ]
        return Measured(
            scores=tuple(score for score in report.scores if score.name in named),
            findings=judge_settings(gate_input),
            guarantee=guarantee,
            unmeasured=next(iter(skipped), ""),
        )


def list_trial_audits(policy: Policy, utilities: Sequence[str]) -> tuple[str, ...]:
    """Return what the policy requires or limits, the label, and the utilities."""
    from ppdm_core.audit.runner import list_audits

    named = {*policy.required, LABEL, *utilities}
    named |= {limit.split(".")[0] for limit in policy.limits}
    return tuple(name for name in list_audits() if name in named)
