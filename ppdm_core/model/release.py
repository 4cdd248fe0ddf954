"""What a sanitizer returns: released rows, public parameters, and its guarantee."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from ppdm_core.model.arrays import Floats
from ppdm_core.model.rows import Rows
from ppdm_core.model.schema import Categorical


@dataclass(frozen=True)
class Guarantee:
    """What a method promises, no more. ``inf`` means that no bound exists."""

    kind: Literal["bounded", "bounded_given_basis", "empirical"]
    ln_component: float
    ln_attribute: float
    ln_record: float
    assumptions: tuple[str, ...] = ()
    without_bound: tuple[str, ...] = ()  # of several methods, those that have none


@dataclass(frozen=True)
class Response:
    """A released categorical column, and what a recipient must know to count it right."""

    column: Categorical
    gamma: float  # how much likelier the true cell is than each of the others

    @property
    def kept(self) -> float:
        """Probability that a cell is released as it is."""
        return self.gamma / (self.gamma + self.column.k - 1)


@dataclass(frozen=True, eq=False)
class Public:
    """What the world learns beside the values; handed to recipients and to every attack.

    With a public map the release is ``Z = (X - centre) @ loadings + noise``, published as ``Z``
    (space "components") or as ``centre + Z @ pinv(loadings)`` (space "original").
    """

    method: str
    space: Literal["components", "original", "rotated", "embedded"]
    columns: tuple[str, ...]  # names of the released numeric columns, (s,) or (d,)
    centre: Floats | None = None  # (d,)
    loadings: Floats | None = None  # (d, s)
    law: str | None = None
    scales: Floats | None = None  # (s,) scale of the noise per component
    grid: Floats | None = None  # (s,) every component is a multiple of its grid step
    ranges: Floats | None = None  # (s, 2) interval that the noisy components are clamped to
    preserves_distances: bool = False
    whole: tuple[str, ...] = ()  # columns that hold nothing but whole numbers
    responses: tuple[Response, ...] = ()  # the released categorical columns
    facts: Mapping[str, float | str] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """All released columns but the label."""
        return self.columns + tuple(response.column.name for response in self.responses)


@dataclass(frozen=True, eq=False)
class Released:
    """A sanitized table and what is published with it."""

    rows: Rows
    public: Public
    atom: float  # largest probability of any single value in one released cell
    fit_counts: Mapping[str, int] = field(default_factory=dict)  # known before the rows are made

    @property
    def counts(self) -> dict[str, int]:
        """Everything that was counted, such as clipped scores, by name."""
        return {**self.fit_counts, **self.rows.counts}
