"""What the release file asks of the attacker, the audit and the gate."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Literal

from ppdm_core.model.verdict import Review

Effort = Literal["quick", "standard", "thorough"]
LABEL = "label"  # the audit of what the label alone gives
AMPLIFICATION, LEDGER = "amplification.", "ledger."  # how the names of these limits begin
LEDGER_RECORD, LEDGER_DRAWS = f"{LEDGER}record", f"{LEDGER}draws"  # on all releases together


@dataclass(frozen=True)
class Attacker:
    """What the outsider is assumed to know."""

    known_records: int = 0
    sample_share: float = 0.0
    epsilon: float = 0.1


PLACEHOLDERS = frozenset({"", "?", "-", "draft", "none", "tba", "tbd", "to be decided"})
UNDECIDED = "not decided"


def is_decided(text: str) -> bool:
    """Return whether a text names a person or body, and is no placeholder."""
    return text.strip().strip(".").lower() not in PLACEHOLDERS


@dataclass(frozen=True)
class Limit:
    """A limit that a person set, with a reason."""

    value: float
    set_by: str  # "": no person yet
    reason: str
    absolute: bool = False  # else the limit is on the excess over the baseline
    waive: tuple[str, ...] = ()  # gamma only: methods without a bound that may pass
    review: float | None = None  # from here to ``value`` a reviewer decides

    @property
    def origin(self) -> str:
        """Who set it and why, as far as that is known."""
        return ": ".join(filter(None, (self.set_by or UNDECIDED, self.reason)))


@dataclass(frozen=True)
class Policy:
    """What a release is audited with and judged by."""

    required: tuple[str, ...]
    limits: Mapping[str, Limit]
    attacker: Attacker = field(default_factory=Attacker)
    shadow_draws: int = 3
    splits: int = 5  # draws of a random half, for attacks that need persons outside the release
    effort: Effort = "standard"
    groups: tuple[str, ...] = ()  # categorical columns whose groups are scored separately
    time_limit: float = 600.0  # seconds, for each attack over all draws
    level: float = 0.95
    tried: int = 1  # settings, of which this one was chosen on the same records
    review: Review = field(default_factory=Review)
    collusion_waiver: str = ""  # who guarantees that audiences do not combine their releases

    @property
    def attack_settings_key(self) -> str:
        """What the audit's draws depend on: the attacker, the number of draws and the effort.

        Limits and texts are not part of it, so that changing one gives no other draws.
        """
        settings = [asdict(self.attacker), self.shadow_draws, self.splits, self.effort]
        return json.dumps(settings, sort_keys=True)

    def judge_choice(self, tried: int) -> Policy:
        """Return the policy for settings that were chosen among so many on the same records.

        The end of each interval that a PASS rests on gets its share of the error, so that these
        ends of all settings hold together and a PASS of the chosen one is not wrong more often
        than that of a fixed one. The end that a FAIL rests on stays as it is.
        """
        return replace(self, tried=max(1, tried))

    @property
    def pass_level(self) -> float:
        """The level of the end of an interval that a PASS rests on."""
        return 1.0 - (1.0 - self.level) / self.tried

    @property
    def unlimited(self) -> tuple[str, ...]:
        """What no limit judges: the amplification of one release, the ledger of all."""
        kinds = (AMPLIFICATION, LEDGER)
        missing = (kind for kind in kinds if not any(key.startswith(kind) for key in self.limits))
        return tuple(kind.removesuffix(".") for kind in missing)

    @property
    def digest(self) -> str:
        text = json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()
