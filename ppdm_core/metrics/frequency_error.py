from __future__ import annotations

import numpy as np

from ppdm_core.metrics._comparison import Measurement, ReleaseComparison
from ppdm_core.metrics._metric import ReleaseMetric
from ppdm_core.metrics._release import check_comparison
from ppdm_core.model.arrays import Bools, Codes, Floats, Ints
from ppdm_core.model.errors import NotApplicable
from ppdm_core.model.release import Response


class FrequencyError(ReleaseMetric):
    """Error of the frequencies of categories that the unbiased estimator gives.

    Half the sum over the categories of |estimate - truth|, as the mean over the categorical
    columns of the release. The notes hold the column with the largest error, and the error of a
    recipient who counts randomized responses as if they were true. The baseline assumes that all
    categories are equally frequent.
    """

    name = "frequency_error"
    utility_name = "frequencies"
    title = "Error of category frequencies"
    describe = "error of the estimated frequencies of categories"
    template = (
        "Estimated frequencies of categories are {value} off; if all categories were assumed "
        "equally frequent, {baseline}."
    )
    better = "down"
    bounds = (0.0, float("inf"))
    reads = frozenset({"numeric", "categorical"})
    on_original = 0.0

    def measure(self, comparison: ReleaseComparison) -> Measurement:
        responses, true = check_categories(self.name, comparison)
        released_codes = comparison.released_codes
        assert released_codes is not None

        def errors(keep: Bools) -> tuple[Floats, Floats]:
            rows = comparison.select_rows(keep)
            if not keep.any() or not rows.any():
                return np.full(1, np.nan), np.full(1, np.nan)
            found = [
                frequency_errors(response, true[keep, j], released_codes[rows, j])
                for j, response in enumerate(responses)
            ]
            return np.array([one[0] for one in found]), np.array([one[1] for one in found])

        estimated, counted = errors(np.ones(len(true), dtype=np.bool_))
        notes = {"worst_column": float(estimated.max()), "as_released": float(counted.mean())}
        return Measurement(
            float(estimated.mean()), lambda keep: float(errors(keep)[0].mean()), notes
        )

    def baseline(self, comparison: ReleaseComparison) -> float:
        responses, true = check_categories(self.name, comparison)
        return float(
            np.mean(
                [
                    total_variation(
                        count_codes(true[:, j], response.column.k) / len(true),
                        np.full(response.column.k, 1 / response.column.k),
                    )
                    for j, response in enumerate(responses)
                ]
            )
        )


def check_categories(
    name: str, comparison: ReleaseComparison
) -> tuple[tuple[Response, ...], Codes]:
    """Return the responses and the true codes; NotApplicable without categorical columns."""
    check_comparison(name, comparison)
    responses = comparison.public.responses
    if not responses or comparison.C is None or comparison.released_codes is None:
        raise NotApplicable(f"{name} needs categorical columns in the release.")
    return responses, comparison.C


def frequency_errors(response: Response, true: Codes, released_codes: Codes) -> tuple[float, float]:
    """Return the errors of the estimated frequencies and of the raw counts."""
    from ppdm_core.sanitizers.randomized_response import estimate_frequencies

    k = response.column.k
    right, counts = count_codes(true, k) / len(true), count_codes(released_codes, k)
    estimate, _ = estimate_frequencies(counts, response.gamma, k)
    return total_variation(estimate, right), total_variation(counts / len(released_codes), right)


def count_codes(codes: Codes, k: int) -> Ints:
    """Return the counts of the k codes; missing cells, coded -1, are the last."""
    return np.bincount(np.where(codes < 0, k - 1, codes), minlength=k)


def total_variation(one: Floats, other: Floats) -> float:
    """Return the total variation distance of two distributions."""
    return float(np.abs(one - other).sum() / 2)
