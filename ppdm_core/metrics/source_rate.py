from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from ppdm_core.metrics._metric import (
    Better,
    Kind,
    SourceMetric,
    Told,
    check_finite,
    check_links,
    percent,
)
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.errors import Defect


@dataclass(frozen=True)
class SourceRate(SourceMetric):
    """Share of rows whose likeliest source is the record that they were drawn from."""

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
        """A record picked blindly out of ``n``."""
        return 1.0 / n

    def sentence(self, told: Told) -> str:
        return (
            f"{told.story} That names the record behind {percent(told.value)} of the rows; "
            f"picking records blindly, {percent(told.baseline)}."
        ).strip()


def check_guesses(name: str, guess: Ints, probability: Floats, truth: Ints) -> None:
    if guess.ndim != 2 or guess.shape[1] == 0 or guess.shape != probability.shape:
        raise Defect(f"{name} got guesses of shape {guess.shape} and {probability.shape}.")
    check_links(name, guess[:, 0], truth)
    check_finite(name, probability)
    if probability.min() < 0 or probability.sum(axis=1).max() > 1 + 1e-9:
        raise Defect(f"{name} got probabilities that are none.")
