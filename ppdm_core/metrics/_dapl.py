"""How far a kernel density estimate is from the truth: what the two DAPL metrics share."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np

from ppdm_core.metrics._comparison import Compared, Measured
from ppdm_core.metrics._metric import Kind
from ppdm_core.metrics._release import OfRelease, check_compared
from ppdm_core.model.arrays import Codes, Floats
from ppdm_core.model.errors import NotApplicable
from ppdm_core.numerics.kernel_model import Kernel, Rule, is_resampled

MOST_RECORDS = 2_000  # of a class


class Dapl(OfRelease):
    """The mean over classes by their sizes. It is an error of the density: no limit may stand on
    it."""

    kind: ClassVar[Kind] = "privacy"
    gateable: ClassVar[bool] = False
    name: ClassVar[str]

    @abstractmethod
    def of_class(self, X: Floats, rule: Rule, widths: Floats, rng: np.random.Generator) -> float:
        """Of the records of one class, with the widths of the whole table's columns."""

    def measure(self, compared: Compared) -> Measured:
        if not is_resampled(compared.public):
            raise NotApplicable(f"{self.name} needs rows that were drawn by kde_resample.")
        check_compared(self.name, compared)
        X, label, rule = compared.X, compared.label, Rule.of(compared.public)

        def value(X: Floats, label: Codes) -> float:
            return self._weighted(X, label, rule, compared.rng(self.name))

        return Measured(value(X, label), lambda keep: value(X[keep], label[keep]))

    def _weighted(self, X: Floats, label: Codes, rule: Rule, rng: np.random.Generator) -> float:
        widths, total = np.ptp(X, axis=0), 0.0
        for code in np.unique(label).tolist():
            records = X[label == code]
            used = records
            if len(records) > MOST_RECORDS:
                used = records[rng.choice(len(records), MOST_RECORDS, replace=False)]
            total += len(records) * self.of_class(used, rule, widths, rng)
        return min(1.0, max(0.0, total / len(X)))

    def original(self, compared: Compared) -> float:
        """Records are drawn from the truth itself."""
        return 0.0

    def baseline(self, compared: Compared) -> float:
        """Rows that have nothing to do with the records."""
        return 1.0


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
