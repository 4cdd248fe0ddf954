from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from ppdm_core.metrics._metric import Better, Kind, SentenceValues, SourceMetric, percent
from ppdm_core.metrics.source_rate import check_guesses
from ppdm_core.model.arrays import Floats, Ints


@dataclass(frozen=True)
class SourcePosterior(SourceMetric):
    """Mean probability that the attacker gives to the true source record of a row.

    Only the most likely records are named, so the value is a lower bound.
    """

    name: ClassVar[str] = "source_posterior"
    kind: ClassVar[Kind] = "privacy"
    better: ClassVar[Better] = "down"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    goal: ClassVar[Literal["source"]] = "source"
    is_rate: ClassVar[bool] = False
    gateable: ClassVar[bool] = True
    describe: ClassVar[str] = "mean probability given to the true source of a row"

    def measure(self, guess: Ints, probability: Floats, truth: Ints) -> float:
        check_guesses(self.name, guess, probability, truth)
        given = np.where(guess == truth[:, None], probability, 0.0).sum(axis=1)
        return min(1.0, float(np.mean(given)))

    def baseline(self, n: int) -> float:
        """Return the value for an attacker without the release: equal for each of ``n`` records."""
        return 1.0 / n

    def sentence(self, values: SentenceValues) -> str:
        return (
            f"{values.story} The true record behind a row gets a probability of "
            f"{percent(values.value)} on average; "
            f"without the release, {percent(values.baseline)}."
        ).strip()
