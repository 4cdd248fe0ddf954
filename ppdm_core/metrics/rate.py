from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from ppdm_core.metrics._metric import Better, Kind, LinkMetric, SentenceValues, check_links, percent
from ppdm_core.model.arrays import Ints


@dataclass(frozen=True)
class Rate(LinkMetric):
    """Share of targets that were linked to their own released row; -1 is a miss."""

    name: ClassVar[str] = "rate"
    kind: ClassVar[Kind] = "privacy"
    better: ClassVar[Better] = "down"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    goal: ClassVar[Literal["link"]] = "link"
    is_rate: ClassVar[bool] = True
    gateable: ClassVar[bool] = True
    is_headline: ClassVar[bool] = True
    describe: ClassVar[str] = "share of the searched persons whose row was found"

    def measure(self, link: Ints, truth: Ints) -> float:
        check_links(self.name, link, truth)
        return float(np.mean(link == truth))

    def baseline(self, n: int) -> float:
        """Return the value for rows picked at random out of ``n``."""
        return 1.0 / n

    def sentence(self, values: SentenceValues) -> str:
        return (
            f"{values.story} That finds {percent(values.value)} of them; "
            f"picking rows at random finds {percent(values.baseline)}."
        ).strip()
