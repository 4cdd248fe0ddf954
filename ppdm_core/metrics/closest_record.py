from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from ppdm_core.metrics._comparison import Measurement, ReleaseComparison
from ppdm_core.metrics._metric import ReleaseMetric
from ppdm_core.metrics._release import check_comparison, sample_indices
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.errors import NotApplicable
from ppdm_core.model.reasons import Reason
from ppdm_core.numerics.neighbours import find_nearest

_MAX_ROWS = 2_000  # released rows, and originals, whose closest original is searched


class ClosestRecord(ReleaseMetric):
    """Probability that a row is closer to its closest original than an original to another.

    A tie counts half, so that other persons of the same population score one half. A copy
    scores 1. A low value says little: a row may be far from all originals and still disclose whose
    it is. So the metric is for screening only, and no limit may use it. If there are more than
    2,000 rows, a random sample is measured against all originals.
    """

    name = "closest_record"
    title = "Rows close to original records"
    describe = "probability that a row is closer to an original than originals are"
    template = (
        "In {value} of the comparisons a released row is closer to an original than two originals "
        "are to each other; for other persons it would be {baseline}{original}."
    )
    original_phrase = ", and for held-out originals {}"
    kind = "privacy"
    better = "down"
    max_records = _MAX_ROWS
    interval_method = "mean"
    gateable = False
    needs_alignment = False
    must_notice: ClassVar[Mapping[str, float]] = {"verbatim rows": 0.85}

    def measure(self, comparison: ReleaseComparison) -> Measurement:
        check_comparison(self.name, comparison)
        P = comparison.map_clean_records(np.arange(len(comparison.X)))
        if P is None:
            raise NotApplicable(
                f"{self.name} needs the original columns or a public map.",
                reason=Reason.NO_COMMON_COLUMN,
            )
        rows, wins = _closeness(P, comparison.rows, comparison.rng(self.name))
        value = float(np.mean(wins))
        return Measurement(value, lambda keep: value, each=(rows, wins))

    def original(self, comparison: ReleaseComparison) -> float:
        """Return the value for one half of the originals against the other half."""
        rng = comparison.rng(self.name)
        order = rng.permutation(len(comparison.X))
        half = len(order) // 2
        return float(
            np.mean(_closeness(comparison.X[order[:half]], comparison.X[order[half:]], rng)[1])
        )

    def baseline(self, comparison: ReleaseComparison) -> float:
        """Return the value for other persons of the same population."""
        return 0.5


def _closeness(P: Floats, Y: Floats, rng: np.random.Generator) -> tuple[Ints, Floats]:
    """Return rows of Y, and the probability that each is closer to P than two rows of P are."""
    if len(P) < 2:
        raise NotApplicable(f"{ClosestRecord.name} needs two records or more.")
    rows, some = sample_indices(len(Y), _MAX_ROWS, rng), sample_indices(len(P), _MAX_ROWS, rng)
    between = np.sort(_squared_gaps(P[some], P, some))
    gap = _squared_gaps(Y[rows], P, None)
    farther = len(between) - np.searchsorted(between, gap, side="right")
    equal = len(between) - farther - np.searchsorted(between, gap, side="left")
    return rows, np.asarray((farther + equal / 2.0) / len(between))


def _squared_gaps(A: Floats, P: Floats, own: Ints | None) -> Floats:
    """Return squared distances to the closest of P; ``own``: place of each row in P, left out."""
    closest = np.empty(len(A), dtype=np.int64)
    for near in find_nearest(A, P, 1, own):
        first = np.searchsorted(near.row, np.arange(near.rows.stop - near.rows.start))
        closest[near.rows] = near.column[first]
    gap = A - P[closest]
    found = np.einsum("ij,ij->i", gap, gap)
    # In units of the table and rounded, so that equal distances compare as equal.
    return np.asarray(np.round(found / max(float(np.max(P**2)), 1e-300), 11))
