"""Rows and known people of one label, for the attacks on resampling within classes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ppdm_core.attacks._row_density import log_background
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.attacker import AttackerView
from ppdm_core.numerics.kernel_model import FEW_ROWS, KernelSetting


@dataclass(frozen=True, eq=False)
class LabelGroup:
    rows: Ints  # places in view.Y
    targets: Ints  # places among the targets
    Y: Floats
    X: Floats
    all_rows: Floats  # the rows of all classes
    around: KernelSetting

    @property
    def record_count(self) -> float:
        """As many records as rows, unless more are known."""
        return float(max(len(self.Y), len(self.X), 1))

    @cached_property
    def background(self) -> Floats:
        """Log density of each row if nobody who is known is behind it."""
        # The spread of few rows would make them look too common.
        few = len(self.Y) < FEW_ROWS
        fitted = np.vstack([self.Y, self.all_rows]) if few else self.Y
        return log_background(fitted, self.around)[: len(self.Y)]


def iterate_label_groups(view: AttackerView) -> Iterator[LabelGroup]:
    """The classes that have rows."""
    targets = view.targets
    assert targets is not None
    around = KernelSetting.of(view.public, view.schema, view.Y)
    for code in np.unique(view.label).tolist():
        rows, people = np.flatnonzero(view.label == code), np.flatnonzero(targets.label == code)
        yield LabelGroup(rows, people, view.Y[rows], targets.X[people], view.Y, around)


def add_by_row(start: Floats, row: Ints, likely: Floats) -> Floats:
    """Log of exp(start) and all exp(likely) of the same row; ``row`` is sorted."""
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
