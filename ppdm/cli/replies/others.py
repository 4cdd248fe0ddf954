"""Replies about tables, attacks, homes, keys and servers."""

from __future__ import annotations

from typing import Any, Literal

from ppdm.cli.replies.base import Model
from ppdm.cli.replies.releases import WithdrawalBody


class LeakTestBody(Model):
    """How often an attack noticed a planted leak."""

    attack: str
    plant: str
    noticed: int
    repetitions: int


class SelfTestReply(Model):
    """`self-test`."""

    proofs: list[LeakTestBody]
    failed: dict[str, str]
    complaints: list[str]


class ColumnBody(Model):
    """A column of a draft."""

    name: str
    role: str
    why: str


class InitReply(Model):
    """`init`."""

    file: str
    columns: list[ColumnBody]
    decisions: list[str]


class SignedApprovalBody(Model):
    """An approval whose signature is by the key that it names."""

    by: str
    key: str  # fingerprint


class VerifyReply(Model):
    """`verify`."""

    release_id: str
    digest: str
    signature: Literal["valid", "not checked", "none"]
    signer: str | None
    not_checked: str | None
    newer: str | None
    withdrawn: WithdrawalBody | None = None
    approvals: tuple[SignedApprovalBody, ...] = ()


class EventBody(Model):
    """One event of the history."""

    number: int
    dataset: str | None
    release_id: str | None
    kind: str
    mac: str
    happened: str
    broken: list[str]  # by a verdict: the checks that did not pass, with their figures


class HistoryReply(Model):
    """`history` lists events; with --verify it counts what was checked."""

    events: list[EventBody] | None = None
    event_count: int
    rows: int | None = None
    folders: int | None = None
    withdrawn: int | None = None


class ServersReply(Model):
    """`up`."""

    home: str
    pages: dict[str, str]
    links: dict[str, str]
    api: str


class ReportReply(Model):
    """`report`."""

    release_id: str
    report: str


class StoppedReply(Model):
    """`down`."""

    home: str
    stopped: list[str]


class ClusterReply(Model):
    """`cluster up` and `cluster down`."""

    home: str
    address: str | None
    workers: int
    running: bool


class RemarkBody(Model):
    """One finding about a home."""

    about: str
    text: str
    remedy: str | None
    is_urgent: bool


class DoctorReply(Model):
    """`doctor`."""

    home: str
    remarks: list[RemarkBody]


class ExamplesReply(Model):
    """`examples`."""

    folder: str
    written: list[str]


class KeyReply(Model):
    """`key backup`, `key restore` and `key public`."""

    dataset: str | None = None
    fingerprint: str | None = None
    file: str | None = None


class ReviewerBody(Model):
    """A reviewer's key."""

    name: str
    key: str  # fingerprint
    enrolled_by: str | None  # fingerprint; None: the first key
    holder: str  # key that stands for the holder: approvals of one holder count once
    added: str
    removed: str | None


class ReviewerReply(Model):
    """`reviewer key`, `reviewer add`, `reviewer remove` and `reviewer list`."""

    reviewers: list[ReviewerBody] | None = None
    fingerprint: str | None = None  # of the key that was made
    files: list[str] | None = None


class ParameterBody(Model):
    """A parameter of a sanitizer."""

    name: str
    required: bool
    default: Any
    meaning: str


class LimitBody(Model):
    """A line for [limits], and what it demands."""

    key: str
    limit: dict[str, Any]
    demands: str


class EntryBody(Model):
    """A sanitizer, an attack, a metric or a gate; each kind has some of the keys."""

    name: str
    kind: str | None = None
    what: list[str] | None = None
    takes: list[str] | None = None
    guarantee: str | None = None
    broken_by: str | None = None
    public: str | None = None
    references: str | None = None
    parameters: list[ParameterBody] | None = None
    example: dict[str, Any] | None = None
    goal: str | None = None
    story: str | None = None
    needs: list[str] | None = None
    breaks: list[str] | None = None
    measured_by: list[str] | None = None
    limits: list[LimitBody] | None = None
    of: str | None = None
    better: str | None = None
    range: list[float | None] | None = None
    measures: str | None = None
    measured_on: list[str] | None = None


class MethodsReply(Model):
    """`methods`: all registries, or one entry in full."""

    sanitizers: list[EntryBody] | None = None
    attacks: list[EntryBody] | None = None
    metrics: list[EntryBody] | None = None
    gates: list[EntryBody] | None = None
    entry: EntryBody | None = None


class SchemaReply(Model):
    """`schema`."""

    document: dict[str, Any] | None = None
    names: list[str] | None = None


class EmptyReply(Model):
    """`serve`."""
