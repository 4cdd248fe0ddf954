"""Released rows, public parameters and guarantee: what a sanitizer returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from ppdm_core.model.arrays import Floats
from ppdm_core.model.rows import Rows
from ppdm_core.model.schema import Categorical

# A public fact: lost share of the energy of complete records; those of parties have a number.
ENERGY_LOSS = "energy_loss"
PART = "part"  # a public fact: numbers of the columns that one party of several holds


@dataclass(frozen=True)
class Guarantee:
    """The bound on amplification that a method guarantees. ``inf`` means that no bound exists."""

    kind: Literal["bounded", "bounded_given_basis", "empirical"]
    ln_component: float
    ln_attribute: float
    ln_record: float
    assumptions: tuple[str, ...] = ()
    without_bound: tuple[str, ...] = ()  # methods, as parts of a pipeline, with unbounded draws

    def widen_attribute(self, columns: int) -> Guarantee:
        """Return the guarantee where one attribute of a record determines up to so many columns.

        Changed one by one, each of these columns multiplies the odds by the gamma of an attribute
        at most; all columns together, by the gamma of a record.
        """
        if columns == 1 or self.kind == "empirical":
            return self
        together = (
            f"Up to {columns} columns are computed from one attribute: the bound of an attribute "
            "holds for all of them together."
        )
        return replace(
            self,
            ln_attribute=min(columns * self.ln_attribute, self.ln_record),
            assumptions=(*self.assumptions, together),
        )

    def condition_on_choice(self, tried: int) -> Guarantee:
        """Return the guarantee where the settings were chosen among so many, on the data.

        A bound holds for settings that do not depend on the records.
        """
        if not tried:
            return self
        chosen = (
            f"settings: chosen on the data, {tried:,} tried. What the choice reveals of the "
            "records is not covered."
        )
        return replace(
            self,
            kind="bounded_given_basis" if self.kind == "bounded" else self.kind,
            assumptions=(*self.assumptions, chosen),
        )


@dataclass(frozen=True)
class Response:
    """A released categorical column, and what unbiased estimates of its counts need."""

    column: Categorical
    gamma: float  # probability of the true cell over that of each other one

    @property
    def keep_probability(self) -> float:
        """Probability that the true cell is released."""
        return self.gamma / (self.gamma + self.column.k - 1)


@dataclass(frozen=True, eq=False)
class PublicParameters:
    """What is published in addition to the values; recipients and all attacks get it.

    With a public linear map the release is ``Z = (X - centre) @ loadings + noise``, published as
    ``Z`` (space "components") or as ``centre + Z @ pinv(loadings)`` (space "original").
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
    whole: tuple[str, ...] = ()  # columns of integers
    responses: tuple[Response, ...] = ()  # the released categorical columns
    facts: Mapping[str, float | str] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """All released columns except the label."""
        return self.columns + tuple(response.column.name for response in self.responses)


@dataclass(frozen=True, eq=False)
class Released:
    """A sanitized table and what is published with it."""

    rows: Rows
    public: PublicParameters
    atom: float  # largest probability of any single value in one released cell
    fit_counts: Mapping[str, int] = field(default_factory=dict)  # known before the rows are made

    @property
    def counts(self) -> dict[str, int]:
        """Everything that was counted, such as clipped scores, by name."""
        return {**self.fit_counts, **self.rows.counts}
