"""The reply of `check`."""

from __future__ import annotations

from ppdm.cli.replies.base import Model


class LabelBody(Model):
    """The classes of the label."""

    name: str
    classes: int
    records: int
    smallest: int
    revealed: dict[str, float]


class ChangesBody(Model):
    """What validation will change, as counts of rows or cells by column."""

    dropped_rows: int
    dropped_empty: dict[str, int]
    dropped_unlisted: dict[str, int]
    clamped: dict[str, int]
    imputed: dict[str, int]
    other: dict[str, int]


class ChargeBody(Model):
    """What the ledger will charge; amounts are natural logarithms of gamma, null: no bound."""

    is_charged: bool
    is_refused: bool  # by the ledger itself
    is_charged_again: bool  # every run is a new draw, because records have no ids
    records: int
    ln_spent: float | None
    ln_asked: float | None
    ln_after: float | None
    ln_limit: float | None
    ln_remaining: float | None
    draws_after: int
    draws_limit: float | None
    sentences: list[str]


class BadReleaseBody(Model):
    """A bad release of the table: who refuses it, or which limits would."""

    name: str
    refused_by: list[str]
    observed: dict[str, float]
    refusing_limits: dict[str, float]


class PolicyCheckBody(Model):
    """What the policy check of the self-test will find."""

    is_refused: bool
    records: int
    bad_releases: list[BadReleaseBody]
    noise_refused_by: list[str]
    without_power: dict[str, str]
    sentences: list[str]
    seconds: float
    is_exact: bool  # the release will find the same figures


class CostBody(Model):
    """An estimate of what the release costs."""

    seconds: float
    memory_mb: float
    disk_mb: float


class CheckReply(Model):
    """`check`."""

    file: str
    rows: int
    checks: int
    method: str
    smallest_limits: dict[str, float]
    frequently_changed_columns: dict[str, float]
    weaker_promises: list[str]
    label: LabelBody | None
    label_warnings: list[str]
    repeated_rows: int
    changes: ChangesBody
    ledger: ChargeBody
    policy_check: PolicyCheckBody
    estimate: CostBody
    expectations: str | None = None  # the suite that was written
