"""The reply of `tune`."""

from __future__ import annotations

from typing import Any

from ppdm.cli.replies.base import Model


class UtilityBody(Model):
    """How much of the chosen use a setting keeps: 0 without the release, 1 with the original."""

    share: float
    low: float
    high: float
    words: str


class RiskBody(Model):
    """A judged score of a setting."""

    name: str
    value: float
    low: float
    high: float
    baseline: float


class SettingBody(Model):
    """A setting that was tried."""

    method: str
    parameters: dict[str, Any]
    outcome: str  # PASS, REVIEW or FAIL, on the draws of the tune
    did_not_pass: list[str]
    why_not: str
    round: int
    records: int
    ln_gamma: float | None  # of a record; null: no bound
    utility: UtilityBody | None
    scores: list[RiskBody]


class OfferBody(Model):
    """A setting that a limit does not allow, and what would allow it."""

    needed: str  # the value of the limit, or a waiver
    gained: str  # the utility of the setting
    others: list[str]  # what would have to change besides


class TradeOffBody(Model):
    """What a limit costs, or a check that no setting passes."""

    check: str
    limit: str  # "": the check is no limit
    utility: str  # the best that was tried under the limit; "": no setting keeps it
    is_alone: bool  # that setting breaks other limits
    offers: list[OfferBody]
    sentence: str


class TuneReply(Model):
    """`tune`."""

    dataset: str
    number: int
    records: int
    sample: int
    tried: int  # settings
    tried_in_all: int  # by this tune and by earlier ones on the same records
    utility: dict[str, float]
    proposed: SettingBody | None
    has_margin: bool
    file: str | None  # the release file that was written
    page: str
    obstacles: list[str]
    trade_offs: list[TradeOffBody]
    settings: list[SettingBody]
    seconds: float
