from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from ppdm_core.metrics._metric import Better, Kind, PairMetric, SentenceValues, check_links, percent
from ppdm_core.model.arrays import Ints


@dataclass(frozen=True)
class PairRate(PairMetric):
    """Share of persons whose two partial records were linked; -1 is a miss.

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
    describe: ClassVar[str] = "share of persons whose two partial records were linked"

    def measure(self, link: Ints, truth: Ints) -> float:
        check_links(self.name, link, truth)
        return float(np.mean(link == truth))

    def sentence(self, values: SentenceValues) -> str:
        return (
            f"{values.story} That links both records of {percent(values.value)} of them; for "
            f"persons who are not in the release, {percent(values.baseline)}."
        ).strip()
