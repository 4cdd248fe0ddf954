"""Replies about releases, their scores, checks and charges."""

from __future__ import annotations

from typing import Any, Literal

from ppdm.cli.replies.base import Model

Verdict = Literal["PASS", "REVIEW", "FAIL"]


class ScoreBody(Model):
    """A measured figure with its interval and baseline."""

    attack: str | None  # None: a metric of the release itself
    scenario: str | None
    metric: str
    value: float
    low: float
    high: float
    baseline: float
    original: float | None
    n: int
    worst_decile: float | None
    candidate: str | None
    sentence: str
    notes: dict[str, float]


class FindingBody(Model):
    """The result of one check, with its figures if it judges one."""

    check: str
    outcome: Verdict
    why: str
    remedy: str | None = None  # what would change the outcome
    observed: float | None = None
    low: float | None = None
    high: float | None = None
    baseline: float | None = None
    limit: float | None = None  # as a value of the figure


class AccountBody(Model):
    """A balance of the ledger; amounts are natural logarithms of gamma."""

    audience: str | None  # None: all audiences together
    collusion_waiver: str
    waived: list[str]
    ln_spent: float | None
    ln_limit: float | None
    ln_remaining: float | None
    releases_remaining: int | None
    draws_spent: int
    draws_limit: float | None


class ApprovalBody(Model):
    """An approval that counts."""

    by: str
    name: str
    at: str
    key: str | None = None  # fingerprint of the key that signed it; None: a home without keys


class WithdrawalBody(Model):
    """When and why a version was withdrawn."""

    at: str
    reason: str


class ReleaseBody(Model):
    """How a release ended, with every check and score."""

    release_id: str
    dataset: str
    version: str | None
    stage: str
    started: str
    method: str | None
    verdict: Verdict | None
    guarantee: str | None
    ln_gammas: dict[str, float | None]  # of a component, an attribute and a record
    findings: list[FindingBody]
    scores: list[ScoreBody]
    skipped: dict[str, str]
    failed: dict[str, str]
    approvals: list[ApprovalBody]
    approvals_missing: int
    ledger: AccountBody | None
    records: int | None
    repeated_rows: int | None
    published: str | None
    withdrawn: WithdrawalBody | None
    next_steps: list[str]


class ReleaseReply(Model):
    """`release`, `decide`, `withdraw` and `show`."""

    release: ReleaseBody


class DemoReply(Model):
    """`demo`."""

    releases: list[ReleaseBody]


class RunBody(Model):
    """One run of a home."""

    release_id: str
    dataset: str
    stage: str
    started: str
    method: str | None
    verdict: Verdict | None
    reason: str | None
    next_step: str


class StatusReply(Model):
    """`status`."""

    runs: list[RunBody]


class SideBody(Model):
    """One of two releases that are compared."""

    release_id: str
    stage: str
    started: str
    verdict: Verdict | None
    method: str | None
    source: str  # digest
    code_version: str
    records: int | None
    dropped_rows: int | None
    repeated_rows: int | None
    set_aside: int | None
    released_rows: int | None
    ln_gamma_record: float | None
    ln_ledger: float | None  # of all releases up to this one


class SettingBody(Model):
    """A setting of the release file that differs; None: the file does not have it."""

    name: str
    first: Any
    second: Any


class FigureBody(Model):
    """A measured figure of one of two releases."""

    value: float
    low: float | None
    high: float | None
    baseline: float | None
    limit: float | None  # as a value of the figure
    outcome: Verdict | None  # None: no limit judges it


class ScorePairBody(Model):
    """A figure of two releases; None: it was not measured."""

    name: str
    kind: Literal["privacy", "utility"]
    first: FigureBody | None
    second: FigureBody | None


class DiffReply(Model):
    """`diff`."""

    first: SideBody
    second: SideBody
    settings: list[SettingBody] | None  # None: a release ended before its file was stored
    scores: list[ScorePairBody]


class AuditReply(Model):
    """`audit`."""

    original: str
    released: str
    records: int
    columns: list[str]
    left_out: dict[str, str]
    taken_for: dict[str, str]
    control_left_out: int
    scores: list[ScoreBody]
    skipped: dict[str, str]
    failed: dict[str, str]
    not_run: dict[str, str]
    verdict: Verdict
    findings: list[FindingBody]


class LedgerEntryBody(Model):
    """One entry of the ledger."""

    release_id: str
    audience: str
    kind: str
    method: str
    records: int
    draws: int
    ln_spent: float | None
    ln_asked: float | None
    ln_total: float | None
    happened: str
    terms: dict[str, Any]


class LedgerReply(Model):
    """`ledger`."""

    dataset: str
    accounts: list[AccountBody]
    entries: list[LedgerEntryBody]
