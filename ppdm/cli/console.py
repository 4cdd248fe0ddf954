"""What the commands print."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ppdm_core.model.verdict import Finding

if TYPE_CHECKING:
    from tasks.context import Plan
    from tasks.release_summary import Summary
    from warehouse.database import Run

WIDTH = 100
MOST_REASONS = 3  # a refusal must fit on one screen
AT_A_GLANCE = {"best_accuracy", "distance_loss"}  # of what recipients get

ENDINGS = {
    "published": "PUBLISHED",
    "unchanged": "UNCHANGED (the same bytes as the latest version; nothing new was published)",
    "rehearsed": "APPROVED (dry run; nothing was published)",
    "waiting": "REVIEW (nothing was published; people decide)",
    "refused": "REFUSED (nothing was published)",
}
MAYBE = "REVIEW (dry run; people would have to decide)"


def outcome_text(summary: Summary) -> str:
    stage = summary.run.stage
    is_maybe = summary.is_undecided and stage == "rehearsed"
    ending = MAYBE if is_maybe else ENDINGS.get(stage, stage)
    lines = [f"{summary.run.release_id}  {summary.method}  {ending}"]
    lines.append(gamma_line(summary))
    if stage == "refused" or summary.is_undecided:
        failures = summary.refusals
        lines += [line for finding in failures[:MOST_REASONS] for line in reason(finding)]
        more = len(failures) - MOST_REASONS
        extra = f" ({more} more)" if more > 0 else ""
        lines.append(f"  Every check{extra}: {show_command(summary)}")
        lines += to_decide(summary)
    else:
        lines += attackers(summary)
        lines += left_to_people(summary)
    if summary.folder:
        lines.append(f"  Dataset, manifest, card: {near(summary.folder)}")
    return "\n".join(lines)


def gamma_line(summary: Summary) -> str:
    figures = [f"{name} {gamma}" for name, gamma in summary.gammas().items()]
    note = " (no useful worst-case bound)"
    plain = ", ".join(figure.replace(note, "*") for figure in figures)
    weaker = summary.guarantee is not None and summary.guarantee.kind == "bounded_given_basis"
    return (
        f"  gamma: {plain}"
        + ("   * no useful worst-case bound" if "*" in plain else "")
        + ("\n  weaker promise: a basis or bounds come from the private data" if weaker else "")
    )


def reason(finding: Finding) -> list[str]:
    return wrapped(f"{finding.check}: {finding.why}", most=3)


def attackers(summary: Summary) -> list[str]:
    """One sentence for each attack: its gated score, or else its first. Of what recipients get,
    what is judged and a glance; the card tells the rest."""
    if summary.report is None or summary.verdict is None:
        return []
    gated = {finding.check for finding in summary.verdict.findings}
    chosen: dict[str, str] = {}
    for score in sorted(summary.report.scores, key=lambda score: score.name not in gated):
        if score.kind == "utility" and score.name not in gated | AT_A_GLANCE:
            continue
        chosen.setdefault(score.name.split(".")[0], score.sentence)
    return [line for sentence in chosen.values() for line in wrapped(sentence)]


def left_to_people(summary: Summary) -> list[str]:
    """Their sentences stand above, with those of the others."""
    if summary.verdict is None or not summary.verdict.failures:
        return []
    checks = ", ".join(finding.check for finding in summary.verdict.failures)
    names = ", ".join(one["name"] or one["by"] for one in summary.approvals or ())
    return wrapped(f"Left to people: {checks}. Approved by: {names or 'nobody'}.")


def wrapped(text: str, most: int | None = None) -> list[str]:
    lines = textwrap.wrap(text, WIDTH - 4)
    if most is not None and len(lines) > most:
        lines = [*lines[: most - 1], lines[most - 1][: WIDTH - 8] + " ..."]
    return [f"  {'- ' if number == 0 else '  '}{line}" for number, line in enumerate(lines)]


def to_decide(summary: Summary) -> list[str]:
    standing = summary.standing
    if standing is None:
        return []
    given = f"{len(standing.counted)} of {standing.needed}"
    return [f"  Approvals: {given}, by others than its author.", f"  {decide_command(summary)}"]


def decide_command(summary: Summary) -> str:
    name = summary.run.release_id
    return f"To decide: ppdm decide {name} --approve --note WHY (or --reject){home_option(summary)}"


def show_command(summary: Summary) -> str:
    return f"ppdm show {summary.run.release_id}{home_option(summary)}"


def home_option(summary: Summary) -> str:
    home = near(summary.home)
    return "" if home == ".ppdm" else f" --home {home}"


def near(path: Path) -> str:
    """A path as people would type it from here."""
    path, here = path.absolute(), Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def show_text(summary: Summary) -> str:
    run = summary.run
    started = f"started {run.started:%Y-%m-%d %H:%M}"
    lines = [f"{run.release_id}  {summary.method}  {run.stage}  {started}"]
    for name, gamma in summary.gammas().items():
        lines.append(f"  gamma of one {name}: {gamma}")
    if summary.guarantee:
        lines += wrapped(f"{summary.guarantee.kind}: {' '.join(summary.guarantee.assumptions)}")
    for finding in summary.verdict.findings if summary.verdict else ():
        lines += [f"  {finding.outcome}  {finding.check}  {finding.observed}"]
        lines += [f"      {line}" for line in textwrap.wrap(finding.why, WIDTH - 6)]
    for one in summary.decisions:
        who = f"{one.person.name} ({one.shown})" if one.shown else one.person.name
        lines += wrapped(f"{one.choice} by {who} on {one.happened:%Y-%m-%d %H:%M}: {one.note}")
    lines += to_decide(summary)
    lines += [f"  {count:,} {what}" for what, count in counts(summary).items() if count]
    if summary.report:
        lines += [f"  skipped  {name}: {why}" for name, why in summary.report.skipped.items()]
        lines += [f"  not run  {name}" for name in summary.report.not_run]
        lines += [f"  failed  {name}: {kind}" for name, kind in summary.report.failed.items()]
    if summary.folder:
        lines.append(f"  published in {near(summary.folder)}")
    return "\n".join(lines)


def counts(summary: Summary) -> dict[str, int]:
    """What was changed on the way, beside the perturbation itself."""
    valid, facts = summary.validated or {}, summary.sanitized or {}
    clamped, imputed = valid.get("clamped", {}), valid.get("imputed", {})
    return {
        "rows dropped for missing values or unlisted categories": valid.get("dropped_rows", 0),
        **{f"values of '{column}' moved to its bounds": n for column, n in clamped.items()},
        **{f"missing values of '{column}' filled": n for column, n in imputed.items()},
        "records set aside for the basis": facts.get("set_aside", 0),
        **facts.get("counts", {}),
    }


def status_text(runs: Sequence[Run]) -> str:
    if not runs:
        return "No release yet."
    width = max(len(run.release_id) for run in runs)
    return "\n".join(
        f"{run.release_id:<{width}}  {run.stage:<10}  {run.started:%Y-%m-%d %H:%M}" for run in runs
    )


def checked_text(path: Path, plan: Plan, facts: Mapping[str, Any]) -> str:
    lines = [
        f"{path.name} and {Path(plan.source.path).name} are fine: {facts['rows']:,} records, "
        f"{facts['checks']} checks, method {plan.method}."
    ]
    for name, smallest in facts["smallest_limits"].items():
        limit = plan.policy.limits[name]
        too_small = (
            " Its limit is smaller: no release can keep it." if limit.value < smallest else ""
        )
        lines.append(
            f"  {name}: so few records certify {100 * smallest:.2g} % at best, "
            f"even if the attack gets nothing.{too_small}"
        )
    for name, share in facts["restless_columns"].items():
        lines.append(
            f"  Column '{name}' changed in {100 * share:.0f} % of the records since the last run: "
            "if it does so every time, everybody is drawn anew and charged in every release, and "
            "the noise averages out. Leave it out, or release a coarser one."
        )
    return "\n".join(lines)
