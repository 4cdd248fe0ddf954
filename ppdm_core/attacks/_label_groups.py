"""Rows and targets of one label, for the attacks on resampling within classes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ppdm_core.attacks._row_density import log_background
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.attacker import AttackerView
from ppdm_core.numerics.kernel_model import MIN_SPREAD_ROWS, KernelSetting


@dataclass(frozen=True, eq=False)
class LabelGroup:
    """The released rows and the targets of one label."""

    rows: Ints  # places in view.Y
    targets: Ints  # places among the targets
    Y: Floats
    X: Floats
    all_rows: Floats  # the rows of all classes
    around: KernelSetting

    @property
    def record_count(self) -> float:
        """Assumed number of records: that of the rows, unless more records are known."""
        return float(max(len(self.Y), len(self.X), 1))

    @cached_property
    def background(self) -> Floats:
        """Log density of each row if no known record is behind it, (m,)."""
        # The spread of few rows would make them look too common.
        few = len(self.Y) < MIN_SPREAD_ROWS
        fitted = np.vstack([self.Y, self.all_rows]) if few else self.Y
        return log_background(fitted, self.around)[: len(self.Y)]


def iterate_label_groups(view: AttackerView) -> Iterator[LabelGroup]:
    """Yield the groups of all labels that have rows."""
    targets = view.targets
    assert targets is not None
    around = KernelSetting.from_public(view.public, view.schema, view.Y)
    for code in np.unique(view.label).tolist():
        rows, persons = np.flatnonzero(view.label == code), np.flatnonzero(targets.label == code)
        yield LabelGroup(rows, persons, view.Y[rows], targets.X[persons], view.Y, around)


def add_by_row(start: Floats, row: Ints, likely: Floats) -> Floats:
    """Return the log of exp(start) plus all exp(likely) of the same row; ``row`` is sorted."""
    total = start.copy()
    if len(row):
        first = np.flatnonzero(np.diff(row, prepend=-1))
        here = row[first]
        top = np.maximum(np.maximum.reduceat(likely, first), start[here])
        shift = np.zeros(len(start))
        shift[here] = top
        parts = np.add.reduceat(np.exp(likely - shift[row]), first)
        total[here] = top + np.log(np.exp(start[here] - top) + parts)
    return total
