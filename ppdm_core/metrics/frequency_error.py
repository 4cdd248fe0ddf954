from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ppdm_core.metrics._comparison import Bools, Compared, Measured
from ppdm_core.metrics._metric import Better, Told, percent
from ppdm_core.metrics._release import OfRelease, check_compared
from ppdm_core.model.arrays import Codes, Floats, Ints
from ppdm_core.model.attacker import ColumnKind
from ppdm_core.model.errors import NotApplicable
from ppdm_core.model.release import Response


@dataclass(frozen=True)
class FrequencyError(OfRelease):
    """How far the frequencies of categories are off, counted with the unbiased estimator.

    Half the sum over the categories of |estimate - truth|, mean over the categorical columns of
    the release. The notes tell the worst column, and the same for somebody who counts random
    answers as if they were true ones. The baseline takes all categories for equally frequent.
    """

    name: ClassVar[str] = "frequency_error"
    better: ClassVar[Better] = "down"
    bounds: ClassVar[tuple[float, float]] = (0.0, float("inf"))
    reads: ClassVar[frozenset[ColumnKind]] = frozenset({"numeric", "categorical"})
    describe: ClassVar[str] = "error of the estimated frequencies of categories"

    def measure(self, compared: Compared) -> Measured:
        responses, true = truth_of(self.name, compared)
        answers = compared.answers
        assert answers is not None

        def errors(keep: Bools) -> tuple[Floats, Floats]:
            rows = compared.rows_of(keep)
            if not keep.any() or not rows.any():
                return np.full(1, np.nan), np.full(1, np.nan)
            found = [
                gaps(response, true[keep, j], answers[rows, j])
                for j, response in enumerate(responses)
            ]
            return np.array([one[0] for one in found]), np.array([one[1] for one in found])

        estimated, counted = errors(np.ones(len(true), dtype=np.bool_))
        notes = {"worst_column": float(estimated.max()), "as_released": float(counted.mean())}
        return Measured(float(estimated.mean()), lambda keep: float(errors(keep)[0].mean()), notes)

    def original(self, compared: Compared) -> float:
        return 0.0

    def baseline(self, compared: Compared) -> float:
        responses, true = truth_of(self.name, compared)
        return float(
            np.mean(
                [
                    total_variation(
                        counts_of(true[:, j], response.column.k) / len(true),
                        np.full(response.column.k, 1 / response.column.k),
                    )
                    for j, response in enumerate(responses)
                ]
            )
        )

    def sentence(self, told: Told) -> str:
        return (
            f"Estimated frequencies of categories are {percent(told.value)} off; if all were "
            f"taken for equally frequent, {percent(told.baseline)}."
        )


def truth_of(name: str, compared: Compared) -> tuple[tuple[Response, ...], Codes]:
    check_compared(name, compared)
    responses = compared.public.responses
    if not responses or compared.C is None or compared.answers is None:
        raise NotApplicable(f"{name} needs categorical columns in the release.")
    return responses, compared.C


def gaps(response: Response, true: Codes, answers: Codes) -> tuple[float, float]:
    """How far frequencies are off: estimated, and just counted."""
    from ppdm_core.sanitizers.randomized_response import estimate_frequencies

    k = response.column.k
    right, counts = counts_of(true, k) / len(true), counts_of(answers, k)
    estimate, _ = estimate_frequencies(counts, response.gamma, k)
    return total_variation(estimate, right), total_variation(counts / len(answers), right)


def counts_of(codes: Codes, k: int) -> Ints:
    """The missing ones, coded -1, are the last of the k."""
    return np.bincount(np.where(codes < 0, k - 1, codes), minlength=k)


def total_variation(one: Floats, other: Floats) -> float:
    return float(np.abs(one - other).sum() / 2)
