"""The outcome of a release: its head line, and what a person can do now."""

from __future__ import annotations

from ppdm_core.model.policy import UNDECIDED, Policy
from tasks.publish.report.scores import choose_worst, format_risk
from tasks.publish.report.view import RiskLine, Step, Tone
from tasks.publish.report.words import join_names
from tasks.release_summary import Summary
from tasks.tune.result import TuneResult
from warehouse.stages import Stage

TONES: dict[Stage, Tone] = {
    Stage.PUBLISHED: "pass",
    Stage.AWAITING_REVIEW: "review",
    Stage.REFUSED: "fail",
    Stage.REJECTED: "fail",
}
PUBLIC_KEY = "steward.pem"


def describe_stage(stage: Stage) -> tuple[str, Tone]:
    """Return the stage of a release in capitals, and its tone."""
    return stage.label, TONES.get(stage, "neutral")


def format_head_sentence(summary: Summary, lines: tuple[RiskLine, ...], *, is_rounded: bool) -> str:
    """Return why a release ended as it did, in one or two sentences."""
    stage = summary.run.stage
    decisive = choose_worst(line for line in lines if line.limit is not None)
    risk = format_risk(decisive, is_rounded=is_rounded) if decisive else ""
    name = summary.settings.audience if summary.settings else ""
    audience = f" for {name}" if name else ""
    largest = f" The largest gain that a limit judges: {lower_first(risk)}" if risk else ""
    if is_rounded or stage == Stage.PUBLISHED:
        is_clear = summary.verdict is not None and not summary.verdict.failures
        how = ": every limit was kept" if is_clear else " after review"
        return f"Published{audience}{how}.{largest}"
    if stage == Stage.APPROVED:
        return f"Every limit was kept, but nothing was published yet.{largest}"
    if stage == Stage.REFUSED and decisive and decisive.outcome == "FAIL":
        count = len(summary.refusals)
        more = f" {count - 1} more checks failed." if count > 1 else ""
        who = name_attacker(decisive)
        return (
            f"Nothing was published, because a limit was broken. {who}: {lower_first(risk)}{more}"
        )
    if is_approved_by_reviewers(summary):
        return f"Reviewers approved it, but nothing was published yet.{largest}"
    if stage == Stage.AWAITING_REVIEW and decisive and decisive.outcome == "REVIEW":
        who = name_attacker(decisive)
        return f"Nothing was published; a reviewer decides. {who}: {lower_first(risk)}"
    if stage == Stage.AWAITING_REVIEW and summary.refusals:
        return f"Nothing was published; a reviewer decides. {summary.refusals[0].text}"
    return summary.format_outcome_sentence()


def is_approved_by_reviewers(summary: Summary) -> bool:
    """Return whether a release has all approvals that it needs, but was not published yet."""
    return summary.standing is not None and not summary.standing.missing


def name_attacker(line: RiskLine) -> str:
    """Return the subject of a sentence about a risk."""
    return line.title if line.goal == "release" else f"An attacker who {lower_first(line.title)}"


def lower_first(text: str) -> str:
    """Return a text with a small first letter."""
    return f"{text[:1].lower()}{text[1:]}"


def list_steps(
    summary: Summary, lines: tuple[RiskLine, ...], tune: TuneResult | None = None
) -> tuple[Step, ...]:
    """Return what a person can do now, the first thing first; ``tune`` is the last one."""
    run = summary.run
    if run.stage == Stage.PUBLISHED:
        return list_published_steps(summary)
    if run.stage == Stage.REFUSED:
        return list_refused_steps(summary, lines, tune)
    if run.stage == Stage.AWAITING_REVIEW:
        return list_waiting_steps(summary)
    if run.stage == Stage.PART_JUDGED and summary.is_undecided:
        return (*list_waiting_steps(summary), Step(run.stage.next_step))
    return (Step(run.stage.next_step.format(release_id=run.release_id)),)


def list_published_steps(summary: Summary) -> tuple[Step, ...]:
    """Return the steps after a publication: hand over, verify, back up."""
    run = summary.run
    backup = Step(
        "If that was not done yet, write a backup of both keys to another machine:",
        f"ppdm key backup {run.dataset} --out {run.dataset}.key; ppdm key backup --out home.key",
    )
    if summary.is_part:
        return (Step("Hand over nothing: these rows are in the pool of the centre."), backup)
    return (
        Step("Hand over this folder of the home:", folder_name(summary)),
        Step(
            "Send recipients the public key another way than the folder:",
            f"ppdm key public --out {PUBLIC_KEY}",
        ),
        Step("Recipients check that nothing was changed:", format_verify(summary)),
        backup,
    )


def list_refused_steps(
    summary: Summary, lines: tuple[RiskLine, ...], tune: TuneResult | None
) -> tuple[Step, ...]:
    """Return the steps after a refusal."""
    run = summary.run
    steps = []
    if summary.ending.rejected_by or summary.ending.refused_because:
        steps.append(Step(" ".join(finding.why for finding in summary.refusals)))
    broken = [lower_first(name_attacker(line)) for line in lines if line.outcome == "FAIL"]
    if broken:
        steps.append(
            Step(
                f"These broke their limits: {'; '.join(broken)}. The parameters of the method:",
                f"ppdm methods {summary.method}",
            )
        )
    steps += [Step(f"{one.check}: {one.remedy}") for one in summary.refusals if one.remedy]
    if summary.verdict is not None:
        steps += list_tune_steps(summary, tune)
        steps.append(
            Step(
                "Do not try settings until one passes: after this refusal, another release of the "
                "same data is decided by a reviewer."
            )
        )
    return (*steps, Step("Every check in the terminal:", f"ppdm show {run.release_id} --all"))


def list_tune_steps(summary: Summary, tune: TuneResult | None) -> list[Step]:
    """Return what the last tune says of the limits that were not kept: what they need and cost.

    A limit that has another value since then is left out, and so is a tune of other records.
    """
    if tune is None or not is_of_same_records(summary, tune):
        text = "What each limit costs, on draws that no verdict uses, says a tune:"
        return [Step(text, "ppdm tune FILE")]
    limits = summary.settings.policy.limits if summary.settings else {}
    failed = {finding.check for finding in summary.refusals}
    same = {name for name, limit in limits.items() if tune.limits.get(name) == limit.value}
    steps = [
        Step(f"{tune.name} ({tune.tried} settings tried): {each.sentence}")
        for each in tune.trade_offs
        if each.check in failed and (each.check in same or not each.limit)
    ]
    choice = tune.choice
    if choice is not None and same == set(limits) == set(tune.limits):
        figure = tune.utility.compute(choice.scores)
        use = f", with {figure.words}" if figure else ""
        steps.append(Step(f"{tune.name} proposed {choice.setting.title}{use}."))
    elif choice is None:
        text = f"{tune.name} found no setting that keeps every limit; {tune.tried} were tried."
        steps.append(Step(text))
    else:
        text = f"{tune.name} was made under other limits. To search under these limits:"
        steps.append(Step(text, "ppdm tune FILE"))
    return steps


def is_of_same_records(summary: Summary, tune: TuneResult) -> bool:
    """Return whether a tune was made on the records of a release."""
    is_same = tune.source == summary.run.source_digest
    return is_same or (summary.validated is not None and tune.data == summary.validated.data)


def list_waiting_steps(summary: Summary) -> tuple[Step, ...]:
    """Return the steps of reviewers."""
    command, standing = summary.decide_command, summary.standing
    if is_approved_by_reviewers(summary):
        again = f"{command} --approve --note WHY"
        return (Step("Publishing was interrupted. To carry the decision out:", again),)
    checks = [finding.check for finding in summary.refusals]
    needed = f"{standing.missing} of {standing.needed}" if standing else "some"
    return (
        Step(f"A person who did not make this release decides about: {join_names(checks)}."),
        Step(
            f"To approve ({needed} approvals are missing):",
            f"{command} --approve --note WHY",
        ),
        Step("To reject:", f"{command} --reject --note WHY"),
    )


def folder_name(summary: Summary) -> str:
    """Return the folder of a published version, below its home."""
    return f"published/{summary.run.dataset}/{summary.run.number:04d}"


def format_verify(summary: Summary) -> str:
    """Return the command that recipients check a version with."""
    return f"ppdm verify {summary.run.number:04d} --public-key {PUBLIC_KEY}"


def name_limit_setters(policy: Policy | None) -> str:
    """Return who set the limits of a policy."""
    limits = policy.limits.values() if policy else ()
    return (
        join_names(list(dict.fromkeys(limit.set_by or UNDECIDED for limit in limits))) or "nobody"
    )
