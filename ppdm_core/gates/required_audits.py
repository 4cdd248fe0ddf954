"""The gate on required audits and kinds of attack."""

from __future__ import annotations

from collections.abc import Iterator

from ppdm_core.attacks import ATTACKS
from ppdm_core.gates._gate import Gate, GateInput
from ppdm_core.gates.score_limits import is_unbreakable
from ppdm_core.model.attacker import Goal
from ppdm_core.model.policy import Policy
from ppdm_core.model.score import AuditReport
from ppdm_core.model.verdict import Finding, Outcome

GOAL_NAMES: dict[Goal, str] = {
    "reconstruct": "reconstruction",
    "norms": "lengths of records",
    "link": "linkage",
    "source": "sources of rows",
    "member": "membership",
    "infer": "inference",
    "pair": "linkability",
    "single_out": "singling out",
}
SUBSTITUTE_GOALS: dict[Goal, tuple[Goal, ...]] = {"reconstruct": ("infer",)}
LIMITED_GOALS: tuple[Goal, ...] = ("reconstruct", "link", "member")  # each needs a limit


class RequiredAudits(Gate):
    """Every required audit ran to its end, none failed, and each kind of attack has a limit.

    An attack that was measured but that no limit judges supports nothing. Where no attack of a
    kind applies to the release, a reviewer must decide about that risk.
    """

    name = "required_audits"
    judges_settings = True

    def check(self, gate_input: GateInput) -> Iterator[Finding]:
        report = gate_input.report
        scored = {name.split(".")[0] for name in select_plain_scores(report)}
        for audit in gate_input.policy.required:
            why = explain_absence(report, audit, scored)
            outcome: Outcome = "FAIL" if why else "PASS"
            remedy = explain_remedy(report, audit, gate_input.policy) if why else ""
            why = why or "It ran to its end."
            yield Finding(f"required.{audit}", outcome, why, remedy=remedy)
        for audit, kind in report.failed.items():
            if audit not in gate_input.policy.required:
                why = f"The audit {audit} failed ({kind})."
                remedy = explain_remedy(report, audit, gate_input.policy)
                yield Finding(f"failed.{audit}", "FAIL", why, remedy=remedy)
        for goal in LIMITED_GOALS:
            # Where no number is released, nothing can be reconstructed; it can be inferred.
            instead = () if gate_input.has_numbers else SUBSTITUTE_GOALS.get(goal, ())
            yield judge_goals(GOAL_NAMES[goal], (goal, *instead), gate_input.policy, report)


def select_plain_scores(report: AuditReport) -> set[str]:
    """Return the names of the scores against the attacker of the policy.

    A scenario with less or more knowledge is no substitute.
    """
    return {score.name for score in report.scores if score.name.count(".") < 2}


def list_judged_attacks(report: AuditReport, policy: Policy) -> set[str]:
    """Return the attacks that were measured and that a limit judges."""
    return {name.split(".")[0] for name in select_plain_scores(report) & set(policy.limits)}


def list_powerless_attacks(report: AuditReport, policy: Policy) -> set[str]:
    """Return the attacks whose limits no release of this table can break."""
    judged = [
        (score.name.split(".")[0], is_unbreakable(score, policy.limits[score.name]))
        for score in report.scores
        if score.name in select_plain_scores(report) & set(policy.limits)
    ]
    breakable = {name for name, is_held in judged if not is_held}
    powerless = report.self_test.powerless if report.self_test else frozenset()
    return {name for name, _ in judged if name not in breakable} | powerless


def judge_goals(word: str, goals: tuple[Goal, ...], policy: Policy, report: AuditReport) -> Finding:
    """Return whether a measured attack with one of these goals has a limit with power."""
    check = f"covered.{word}"
    judged = list_judged_attacks(report, policy)
    names = [name for name, attack in ATTACKS.items() if attack.goal in goals]
    powerless = list_powerless_attacks(report, policy)
    if judged.difference(powerless).intersection(names):
        return Finding(check, "PASS", f"At least one {word} attack has a limit.")
    if judged.intersection(names):
        weak = " and ".join(name for name in names if name in judged)
        why = f"Nothing judges {word} here: any release of this table keeps the limit on {weak}."
        remedy = (
            f"What helps: lower the limit on {weak}, let the attacker know more in [attacker], "
            f"or limit another {word} attack."
        )
        return Finding(check, "REVIEW", why, remedy=remedy)
    open_names = [name for name in names if name not in report.skipped]
    if not open_names:
        reasons = " ".join(dict.fromkeys(report.skipped[name].sentence for name in names))
        why = f"No {word} attack applies to this release, so nothing judges that risk. {reasons}"
        return Finding(check, "REVIEW", why)
    why = f"No measured {word} attack has a limit, so nothing judges that risk. "
    why += f"Set one on a score of {' or '.join(open_names)}"
    if set(report.not_run).intersection(open_names):
        why += ', or if none applies use effort = "standard", which tries them all'
    return Finding(check, "FAIL", f"{why}.")


def explain_absence(report: AuditReport, audit: str, scored: set[str]) -> str | None:
    """Return why a required audit has no score, None if it has."""
    if audit in report.failed:
        return f"The required audit {audit} failed ({report.failed[audit]})."
    if audit in report.skipped:
        return f"The required audit {audit} does not apply: {report.skipped[audit].sentence}"
    if audit not in scored:
        return f"The required audit {audit} was not run."
    return None


def explain_remedy(report: AuditReport, audit: str, policy: Policy) -> str:
    """Return what helps where a required audit has no score."""
    if audit in report.failed:
        return (
            "What helps: release again; if it failed at its time limit, raise 'time_limit' in "
            f"[audit], now {policy.time_limit:g} s."
        )
    if audit in report.skipped:
        return f"What helps: remove {audit} from 'required' in [audit], with its limits."
    return "What helps: release again."
