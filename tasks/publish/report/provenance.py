"""Where a release comes from: events, approvals, self-test, digests and the release file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tasks.publish.report.facts import ReportFacts
from tasks.publish.report.outcome import format_verify
from tasks.publish.report.view import Edition, Provenance
from tasks.publish.report.words import join_names
from tasks.release_summary import Summary
from warehouse.approvals import Decision
from warehouse.stages import Stage

EVENT_WORDS: dict[str, str] = {
    Stage.CREATED: "begun",
    Stage.RAW: "source read",
    Stage.VALIDATED: "table checked",
    Stage.SANITIZED: "candidate made",
    Stage.AUDITED: "attacks run",
    Stage.APPROVED: "approved by the gate",
    Stage.AWAITING_REVIEW: "left to a reviewer by the gate",
    "continued": "continued by another process",
}


def build_provenance(facts: ReportFacts, edition: Edition) -> Provenance:
    """Return the origin of a release; recipients read nothing that depends on a retry."""
    summary = facts.summary
    is_steward = edition == "steward"
    is_published = not is_steward or summary.run.stage == Stage.PUBLISHED
    return Provenance(
        events=tuple(map(describe_event, facts.events)) if is_steward else (),
        approvals=list_approvals(summary, edition),
        self_test=describe_self_test(summary),
        digests=list_digests(summary, edition),
        verify=format_verify(summary) if is_published else "",
        release_file=format_release_file(summary) if is_steward else "",
    )


def describe_event(event: Mapping[str, Any]) -> tuple[str, str]:
    """Return time and content of an event."""
    kind, detail = event["kind"], json.loads(event["detail"])
    words = EVENT_WORDS.get(kind, kind.replace("_", " "))
    if "choice" in detail:
        words = f"{detail['choice']} by {detail['by']}"
    return f"{event['happened']:%Y-%m-%d %H:%M}", words


def list_approvals(summary: Summary, edition: Edition) -> tuple[str, ...]:
    """Return who approved, when and with which key; the notes are for the steward."""
    if edition == "recipients":
        return tuple(
            f"{one.shown or one.person.name}, {one.happened:%Y-%m-%d}{name_key(one, ', ')}"
            for one in summary.counted
        )
    return tuple(
        f"{one.choice} by {one.person.name}{f' ({one.shown})' if one.shown else ''} on "
        f"{one.happened:%Y-%m-%d %H:%M}{name_key(one, ' ')}: {one.note}"
        for one in summary.decisions
    )


def name_key(decision: Decision, before: str) -> str:
    """Return with which key a decision is signed, after a separator; nothing if it is not."""
    signed = decision.signed
    return "" if signed is None else f"{before}signed with key {signed.signature.key}"


def describe_self_test(summary: Summary) -> tuple[str, ...]:
    """Return what the audit proved about itself, one sentence each; no figure of the table."""
    if summary.sites is not None:
        return ("Every site tested its attacks on planted leaks before it judged.",)
    found = summary.self_test
    if found is None:
        return ("The audit did not test itself.",)
    proven = join_names(found["proven"])
    lines = [f"These attacks and checks noticed the leaks planted for them: {proven}."]
    if found["refused"]:
        lines.append(
            "The limits refuse these bad releases of a sample of the table: "
            f"{join_names(found['refused'])}."
        )
    if found["without_power"]:
        lines.append(f"Without power on this table: {join_names(found['without_power'])}.")
    return tuple(lines)


def list_digests(summary: Summary, edition: Edition) -> tuple[tuple[str, str], ...]:
    """Return the digests that identify data, policy, code and, for the steward, sources."""
    run, verdict = summary.run, summary.verdict
    found = [("code", run.code_version)]
    if verdict is not None:
        found = [("data.parquet", verdict.data_digest), ("policy", verdict.policy_digest), *found]
    if edition == "steward":
        found += [("source", run.source_digest), ("release file", run.file_digest)]
    return tuple(found)


def format_release_file(summary: Summary) -> str:
    """Return the release file as indented JSON."""
    if summary.settings is None:
        return ""
    return json.dumps(json.loads(summary.settings.file), indent=2, ensure_ascii=False)
