from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from ppdm_core.metrics._metric import Better, Kind, SourceMetric, Told, percent
from ppdm_core.metrics.source_rate import check_guesses
from ppdm_core.model.arrays import Floats, Ints


@dataclass(frozen=True)
class SourcePosterior(SourceMetric):
    """Mean probability that the attacker gives to the record that a row was really drawn from.

    Only the likeliest records are named, so that it is a lower bound.
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
        """Somebody who ignores the release gives the same to each of ``n`` records."""
        return 1.0 / n

    def sentence(self, told: Told) -> str:
        return (
            f"{told.story} The record behind a row gets a probability of "
            f"{percent(told.value)} on average; "
            f"without the release {percent(told.baseline)}."
        ).strip()
