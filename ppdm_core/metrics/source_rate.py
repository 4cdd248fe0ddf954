from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from ppdm_core.metrics._metric import (
    Better,
    Kind,
    SentenceValues,
    SourceMetric,
    check_finite,
    check_links,
    percent,
)
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.errors import Defect


@dataclass(frozen=True)
class SourceRate(SourceMetric):
    """Share of rows whose most likely source, by the attacker, is the true source record."""

    name: ClassVar[str] = "source_rate"
    kind: ClassVar[Kind] = "privacy"
    better: ClassVar[Better] = "down"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    goal: ClassVar[Literal["source"]] = "source"
    is_rate: ClassVar[bool] = True
    gateable: ClassVar[bool] = True
    is_headline: ClassVar[bool] = True
    describe: ClassVar[str] = "share of rows whose source record was named"

    def measure(self, guess: Ints, probability: Floats, truth: Ints) -> float:
        check_guesses(self.name, guess, probability, truth)
        return float(np.mean(guess[:, 0] == truth))

    def baseline(self, n: int) -> float:
        """Return the value for records picked at random out of ``n``."""
        return 1.0 / n

    def sentence(self, values: SentenceValues) -> str:
        return (
            f"{values.story} That names the record behind {percent(values.value)} of the rows; "
            f"picking records at random, {percent(values.baseline)}."
        ).strip()


def check_guesses(name: str, guess: Ints, probability: Floats, truth: Ints) -> None:
    """Check shapes of guesses and probabilities, and that the latter are probabilities."""
    if guess.ndim != 2 or guess.shape[1] == 0 or guess.shape != probability.shape:
        raise Defect(f"{name} got guesses of shape {guess.shape} and {probability.shape}.")
    check_links(name, guess[:, 0], truth)
    check_finite(name, probability)
    if probability.min() < 0 or probability.sum(axis=1).max() > 1 + 1e-9:
        raise Defect(f"{name} got probabilities below 0, or above 1 together.")
