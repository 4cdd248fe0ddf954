"""How far a kernel density estimate is from the truth: what the two DAPL metrics share."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ppdm_core.errors import NotApplicable
from ppdm_core.metrics._metric import check_finite, check_tables
from ppdm_core.resampled import Kernel, Rule, is_resampled
from ppdm_core.types import Codes, Floats, Ints, Public

MOST_RECORDS = 2_000  # of a class


def weighted(
    name: str,
    measure: Callable[[Floats, Rule, Floats, np.random.Generator], float],
    X: Floats,
    label: Codes,
    Y: Floats,
    public: Public,
    rng: np.random.Generator,
    source: Ints | None,
) -> float:
    """The mean over classes by their sizes; ``measure`` gets records, rule and widths."""
    if not is_resampled(public):
        raise NotApplicable(f"{name} needs rows that were drawn by kde_resample.")
    check_tables(name, X if source is None else X[source], Y, same_shape=True)
    check_finite(name, X)
    rule, widths = Rule.of(public), np.ptp(X, axis=0)
    total = 0.0
    for code in np.unique(label).tolist():
        records = X[label == code]
        used = records
        if len(records) > MOST_RECORDS:
            used = records[rng.choice(len(records), MOST_RECORDS, replace=False)]
        total += len(records) * measure(used, rule, widths, rng)
    return min(1.0, max(0.0, total / len(X)))


class Density:
    """A kernel density estimate as the method makes it, before clipping and rounding."""

    def __init__(self, X: Floats, rule: Rule, widths: Floats) -> None:
        self.X = X
        d = X.shape[1]
        spread = X.std(axis=0, ddof=1) if len(X) > 1 else np.zeros(d)
        self.h = rule.of_records(spread, len(X), widths)
        nowhere = np.full(d, 1e9)
        self.kernel = Kernel(self.h, np.zeros(d), np.zeros(d), -nowhere, nowhere)

    @property
    def exists(self) -> bool:
        """A column that does not vary has no density."""
        return bool(np.all(self.h > 1e-9))

    def draw(self, count: int, rng: np.random.Generator) -> Floats:
        steps = np.median(rng.uniform(-1.0, 1.0, (3, count, self.X.shape[1])), axis=0)
        return np.asarray(self.X[rng.integers(0, len(self.X), count)] + self.h * steps)

    def log(self, Y: Floats) -> Floats:
        """Minus infinity where no record is near."""
        found = np.full(len(Y), -np.inf)
        for rows, (row, _, likely) in self.kernel.pairs(Y, self.X):
            part = np.full(rows.stop - rows.start, -np.inf)
            np.logaddexp.at(part, row, likely)
            found[rows] = part
        return np.asarray(found - np.log(len(self.X)))
