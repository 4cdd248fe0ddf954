"""The result of a tune: what was tried, what is proposed, and what each limit costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ppdm_core.tuning.trade_offs import TradeOff
from ppdm_core.tuning.trial import Trial
from ppdm_core.tuning.utility import Utility
from warehouse.json_codec import from_json
from warehouse.transaction import Transaction
from warehouse.tunes import StoredTune, find_last_tune


@dataclass(frozen=True)
class TuneResult:
    """Everything that a tune found; it holds scores and no record."""

    dataset: str
    data: str  # digest of the records
    source: str  # digest of the content of their source
    policy: str  # digest
    utility: Utility
    records: int  # of the table
    sample: int  # that were measured
    tried: int  # settings
    tried_in_all: int  # by this tune and by earlier ones on the same records
    trials: tuple[Trial, ...]  # the last one of each setting, those that pass first
    limits: Mapping[str, float] = field(default_factory=dict)
    chosen: str = ""  # digest of the proposed setting; "": none keeps the policy
    has_margin: bool = False
    trade_offs: tuple[TradeOff, ...] = ()
    obstacles: tuple[str, ...] = ()  # why a release will not pass, whatever its settings
    seconds: float = 0.0
    number: int = 0  # of the dataset's tunes, once it is stored

    @property
    def name(self) -> str:
        return f"{self.dataset} tune {self.number}"

    @property
    def choice(self) -> Trial | None:
        """The trial of the proposed setting, if there is one."""
        return next((each for each in self.trials if each.setting.digest == self.chosen), None)

    @property
    def outcome(self) -> str:
        """The end of the tune in a few words, for events and tags."""
        if self.choice is None:
            return "no setting keeps the policy"
        return "proposed" if self.has_margin else "proposed without a margin"


def load_tune(db: Transaction, dataset: str) -> TuneResult | None:
    """Return the last tune of a dataset that ended, or None."""
    stored = find_last_tune(db, dataset)
    return None if stored is None else decode_tune(stored)


def decode_tune(stored: StoredTune) -> TuneResult:
    """Return the result of a stored tune."""
    return replace(from_json(TuneResult, stored.result), number=stored.number)
