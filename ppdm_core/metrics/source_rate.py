from __future__ import annotations

import numpy as np

from ppdm_core.metrics._metric import SourceMetric
from ppdm_core.metrics._values import check_finite, check_links
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.errors import Defect


class SourceRate(SourceMetric):
    """Share of rows whose most likely source, by the attacker, is the true source record."""

    name = "source_rate"
    describe = "share of rows whose source record was named"
    template = (
        "{story} That names the record behind {value} of the rows; picking records at random, "
        "{baseline}."
    )
    is_headline = True

    def each(self, guess: Ints, probability: Floats, truth: Ints) -> Floats:
        check_guesses(self.name, guess, probability, truth)
        return np.asarray(guess[:, 0] == truth, dtype=np.float64)


def check_guesses(name: str, guess: Ints, probability: Floats, truth: Ints) -> None:
    """Check shapes of guesses and probabilities, and that the latter are probabilities."""
    if guess.ndim != 2 or guess.shape[1] == 0 or guess.shape != probability.shape:
        raise Defect(f"{name} got guesses of shape {guess.shape} and {probability.shape}.")
    check_links(name, guess[:, 0], truth)
    check_finite(name, probability)
    if probability.min() < 0 or probability.sum(axis=1).max() > 1 + 1e-9:
        raise Defect(f"{name} got probabilities below 0, or above 1 together.")
