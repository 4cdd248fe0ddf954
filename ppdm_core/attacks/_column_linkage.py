"""Find persons by all columns, or by all but one: which columns an attacker needs most."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ppdm_core.attacks._assignment import DistanceCosts, find_nearest_within_labels
from ppdm_core.attacks._randomized_responses import ReleasedResponses
from ppdm_core.attacks._row_posterior import list_posteriors
from ppdm_core.attacks.record_linkage import weigh_columns
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.attacker import AttackerView


class ColumnLinkage:
    """Take the closest row of each target, by the columns that the attacker knows.

    Numeric columns count by the errors of each estimate of the original values, and where they are
    released also by their errors on known pairs. Categories count by the odds of their responses.
    Rows with another label are ruled out if the label is known.
    """

    def __init__(self, view: AttackerView) -> None:
        assert view.targets is not None
        self.view, self.targets = view, view.targets
        self.responses = ReleasedResponses.from_view(view)
        self.numeric = [column.name for column in view.schema.numeric]
        released = view.public.responses if len(self.responses) else ()
        self.categorical = [response.column.name for response in released]
        self.label = view.schema.label.name if view.schema.label else None
        rows = np.arange(len(view.Y))
        self.posteriors = list_posteriors(view, rows) if self.numeric else {}

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of all columns that the attacker can compare."""
        return (*self.numeric, *self.categorical, *([self.label] if self.label else []))

    def link(self, lacking: str | None = None) -> dict[str, Ints]:
        """Return the closest row of each target by name of the estimate; (t,), -1 for none."""
        persons, rows = self.targets.label, self.view.label
        if self.label is not None and self.label == lacking:
            persons, rows = np.zeros_like(persons), np.zeros_like(rows)
        return {
            name: find_nearest_within_labels(costs, persons, rows)[0]
            for name, costs in self._compute_costs(lacking)
        }

    def _compute_costs(self, lacking: str | None) -> Iterator[tuple[str, DistanceCosts]]:
        """Yield costs by name; all are minus log likelihoods, so that they can be added."""
        numbers = np.flatnonzero([name != lacking for name in self.numeric])
        words = np.flatnonzero([name != lacking for name in self.categorical])
        codes = self.responses.select_codes(self.targets), self.responses.rows
        answers = [self.responses.place_points(each, words) for each in codes]

        def add_answers(persons: Floats, rows: Floats) -> DistanceCosts:
            return DistanceCosts(np.hstack([persons, answers[0]]), np.hstack([rows, answers[1]]))

        if not len(numbers):
            yield "answers", DistanceCosts(*answers)
            return
        for name, posterior in self.posteriors.items():
            yield name, add_answers(*posterior.place_points(self.targets.X[:, numbers], numbers))
        weighted = weigh_columns(self.view, numbers)
        if weighted is not None:
            yield "weighted", add_answers(weighted.persons, weighted.rows)
