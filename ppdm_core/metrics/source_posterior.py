from __future__ import annotations

import numpy as np

from ppdm_core.metrics._metric import SourceMetric
from ppdm_core.metrics.source_rate import check_guesses
from ppdm_core.model.arrays import Floats, Ints


class SourcePosterior(SourceMetric):
    """Mean probability that the attacker gives to the true source record of a row.

    Only the most likely records are named, so the value is a lower bound.
    """

    name = "source_posterior"
    describe = "mean probability given to the true source of a row"
    template = (
        "{story} The true record behind a row gets a probability of {value} on average; without "
        "the release, {baseline}."
    )

    def each(self, guess: Ints, probability: Floats, truth: Ints) -> Floats:
        check_guesses(self.name, guess, probability, truth)
        return np.asarray(np.where(guess == truth[:, None], probability, 0.0).sum(axis=1))
