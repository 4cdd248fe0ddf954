from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from ppdm_core.metrics._metric import Better, Kind, PairMetric, Told, check_links, percent
from ppdm_core.model.arrays import Ints


@dataclass(frozen=True)
class PairRate(PairMetric):
    """Share of people whose two partial records were put together; -1 is a miss.

    References: Giomi, Boenisch, Wehmeyer, Tasnadi (2023), linkability, against a control group.
    """

    name: ClassVar[str] = "pair_rate"
    kind: ClassVar[Kind] = "privacy"
    better: ClassVar[Better] = "down"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    goal: ClassVar[Literal["pair"]] = "pair"
    is_rate: ClassVar[bool] = True
    gateable: ClassVar[bool] = True
    is_headline: ClassVar[bool] = True
    describe: ClassVar[str] = "share of people whose two partial records were put together"

    def measure(self, link: Ints, truth: Ints) -> float:
        check_links(self.name, link, truth)
        return float(np.mean(link == truth))

    def sentence(self, told: Told) -> str:
        return (
            f"{told.story} That puts {percent(told.value)} of them together; of people who "
            "are not in the "
            f"release, {percent(told.baseline)}."
        ).strip()
