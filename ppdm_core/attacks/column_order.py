"""Find a secret order of columns from one record, or from the distributions of the columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ppdm_core.attacks._attack import Attack
from ppdm_core.attacks._column_matching import (
    match_by_distribution,
    match_by_search,
    match_by_value,
    transport_costs,
)
from ppdm_core.attacks._map_fitting import ridge
from ppdm_core.attacks._needs import check_needs
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.attacker import AttackerView, Estimate, Goal, MappedRows, RowMap
from ppdm_core.model.errors import NotApplicable
from ppdm_core.model.reasons import Reason
from ppdm_core.numerics.linear_map import has_map

_MAX_STATISTICS_ROWS = 20_000  # from which distributions are taken


@dataclass(frozen=True)
class ColumnOrder(Attack):
    """An attacker who knows a record, or a sample of the population, identifies the columns.

    The release holds some of the columns of a public transform (the cosine transform, or none) in
    a secret order. ``value`` puts released columns where the values of known records are; one known
    record is enough for that. If the attacker does not know which row belongs to which record, a
    row that holds the values of a record is searched first. ``transport`` needs no record of
    the release: it compares the distribution of each column with a sample (one-dimensional optimal
    transport, then the cheapest assignment), and then the correlations of columns. The inverse
    transform follows. Columns that were not released are taken as zero, or, in the
    candidates that end in ``_filled``, as predicted from the others in the attacker's records.

    The search looks for 3, 10 or 40 of the records in all rows, as ``view.effort`` says.
    Distributions and correlations are those of at most 20,000 rows of the release.

    References: Mukherjee, Chen, Gangopadhyay (2008), whose secret order this is; it is no secret
    as large as the number of orders.
    """

    name: ClassVar[str] = "column_order"
    story: ClassVar[str] = (
        "An outsider who knows a record, or a sample of the population, finds out which column is "
        "which."
    )
    title: ClassVar[str] = "Finds out which column is which"
    goal: ClassVar[Goal] = "reconstruct"
    needs: ClassVar[frozenset[str]] = frozenset({"known_or_sample"})
    must_notice: ClassVar[Mapping[str, float]] = {"shuffled cosines": 0.85}

    def attack(self, view: AttackerView, rng: np.random.Generator) -> Estimate:
        check_secret_order(view)
        check_needs(self, view)
        held = _collect_records(view)
        check_record_count(view, held)
        transform = ColumnTransform.from_view(view)
        F = transform.transform(held)
        sample = F if view.sample is None else transform.transform(view.sample)
        some = (
            rng.permutation(len(view.Y))[:_MAX_STATISTICS_ROWS]
            if len(view.Y) > _MAX_STATISTICS_ROWS
            else ...
        )
        prior = transport_costs(sample, view.Y[some])
        orders: dict[str, Ints] = {}
        notes: dict[str, float] = {}
        if view.known is not None and len(view.known.rows):
            orders["value"] = match_by_value(
                transform.transform(view.known.X), view.Y[view.known.rows], prior
            )
        elif view.records is not None and len(view.records):
            records = transform.transform(view.records)
            orders["value"], notes["distance_of_records"] = match_by_search(
                records, view.Y, prior, view.effort
            )
        if len(sample) > 1:
            orders["transport"] = match_by_distribution(sample, view.Y[some], prior)
        if len(orders) == 2:
            notes["columns_agreed"] = float(np.mean(orders["value"] == orders["transport"]))
        low, high = view.schema.lows, view.schema.highs
        maps: dict[str, RowMap] = {}
        for name, order in orders.items():
            for ending in _list_endings(F, order):

                def map_rows(Y: Floats, order: Ints = order, ending: str = ending) -> Floats:
                    C = _complete_columns(F, Y, order, is_filled=bool(ending))
                    return np.clip(transform.invert(C), low, high)

                maps[name + ending] = map_rows
        return Estimate(MappedRows(view.Y, maps), notes=notes)


@dataclass(frozen=True, eq=False)
class ColumnTransform:
    """The public transform whose columns were shuffled."""

    positions: Ints  # (d,) column of the table at each place of the sequence
    origin: Floats  # (d,)
    is_cosine: bool

    @classmethod
    def from_view(cls, view: AttackerView) -> ColumnTransform:
        """Read the transform from what the release publishes."""
        facts, d = view.public.facts, len(view.schema.numeric)
        order = str(facts.get("transform_order", "")).split()
        positions = np.array(order, dtype=np.int64) - 1 if len(order) == d else np.arange(d)
        origin = np.zeros(d) if view.public.centre is None else view.public.centre
        return cls(positions, origin, "DCT-II" in str(facts.get("transform", "")))

    def transform(self, X: Floats) -> Floats:
        """Return the columns of the transform."""
        from scipy.fft import dct

        T = (X - self.origin)[:, self.positions]
        return np.asarray(dct(T, type=2, norm="ortho", axis=1)) if self.is_cosine else T

    def invert(self, C: Floats) -> Floats:
        """Return the original columns."""
        from scipy.fft import idct

        T = idct(C, type=2, norm="ortho", axis=1) if self.is_cosine else C
        X = np.empty_like(C)
        X[:, self.positions] = T
        return X + self.origin


def _list_endings(F: Floats, order: Ints) -> tuple[str, ...]:
    """Return the endings of candidates; pruned columns are zero, or predicted."""
    return ("",) if len(order) == F.shape[1] else ("", "_filled")


def _complete_columns(F: Floats, Y: Floats, order: Ints, *, is_filled: bool) -> Floats:
    """Return all columns of the transform in order; the pruned ones are zero, or predicted."""
    n, d = len(Y), F.shape[1]
    C = np.zeros((n, d))
    C[:, order] = Y
    if is_filled:
        pruned = np.setdiff1d(np.arange(d), order)
        C[:, pruned] = ridge(F[:, order], F[:, pruned], Y)
    return C


def _collect_records(view: AttackerView) -> Floats:
    """Return all records that the attacker has from any origin."""
    d = len(view.schema.numeric)
    known = None if view.known is None else view.known.X
    tables = [X for X in (view.sample, view.records, known) if X is not None]
    return np.concatenate([np.zeros((0, d)), *tables])


def check_secret_order(view: AttackerView) -> None:
    """Raise NotApplicable if the order of the released columns is no secret."""
    is_original = view.public.space == "original"
    if is_original or view.public.space == "embedded" or has_map(view.public):
        raise NotApplicable(
            f"The attack {ColumnOrder.name} needs columns whose order is secret.",
            reason=Reason.COLUMNS_RELEASED if is_original else Reason.NOT_MEASURABLE,
        )


def check_record_count(view: AttackerView, held: Floats) -> None:
    """Raise NotApplicable if the records at hand are too few, or have too few columns."""
    name = ColumnOrder.name
    if len(held) == 1 and view.known is None and view.records is None:
        raise NotApplicable(
            f"The attack {name} needs a sample of more than one record.",
            reason=Reason.TOO_FEW_RECORDS,
        )
    if view.Y.shape[1] > held.shape[1]:
        raise NotApplicable(
            f"The attack {name} needs no more released columns than original ones.",
            reason=Reason.NOT_MEASURABLE,
        )
