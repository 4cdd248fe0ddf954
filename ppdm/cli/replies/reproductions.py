"""The reply of `reproduce`."""

from __future__ import annotations

from ppdm.cli.replies.base import Model


class StatementBody(Model):
    """One measured quantity with the range that the paper claims; null: no limit."""

    quantity: str
    value: float
    low: float
    high: float
    draws: int
    claimed_low: float | None
    claimed_high: float | None
    is_true: bool | None  # null: the interval is partly within the range


class ClaimBody(Model):
    """A claim with its verdict."""

    id: str
    place: str
    claim: str
    figure: str
    kind: str
    variant_of: str
    verdict: str  # holds, in part, does not hold, cannot be decided
    why: str
    erratum: list[str]
    statements: list[StatementBody]


class ReproduceReply(Model):
    """`reproduce`."""

    holds: int
    in_part: int
    does_not_hold: int
    cannot_be_decided: int
    measured: int
    kept: int
    cpu_seconds: float
    seconds: float
    changed: list[str]  # claims whose verdict is not the committed one, with --check
    page: str
    claims: list[ClaimBody]
