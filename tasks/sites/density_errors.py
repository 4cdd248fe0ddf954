"""The error of the densities of each class, which a site returns rounded.

Rows that were resampled by a kernel are drawn from a density: those of a site from its own, those
of the pool from the mixture of the densities of all sites. How far they are from the true density
is an error of the data and not a measure of disclosure, so that no limit judges it.
"""

from __future__ import annotations

import numpy as np

from ppdm_core.audit.audited_part import gather_part
from ppdm_core.audit.disclosure_rounding import round_down, round_up
from ppdm_core.metrics._dapl import MAX_CLASS_RECORDS, Density
from ppdm_core.metrics.dapl_held_out import find_best_level
from ppdm_core.metrics.dapl_plug_in import DaplPlugIn
from ppdm_core.model.arrays import Floats
from ppdm_core.numerics.kernel_model import BandwidthRule, is_resampled
from tasks.audit.attack_inputs import AuditInputs
from tasks.context import ReleaseContext
from tasks.sites.rows import ReleasedTable
from warehouse.stage_facts import DensityErrors

MIN_CLASS_ROWS = 8  # enough for halves and quarters


def measure_density_errors(
    context: ReleaseContext, inputs: AuditInputs, pool: ReleasedTable, seed: bytes
) -> tuple[DensityErrors, ...]:
    """Return rounded errors of each class; none for methods that draw from no density."""
    public, scaling = inputs.sanitized.public, inputs.sanitized.scaling
    if context.label is None or not is_resampled(public):
        return ()
    rule, rng = BandwidthRule.from_public(public), np.random.default_rng(list(seed))
    own, Y = gather_part(scaling.apply(inputs.records), inputs.part), pool.scale(inputs.sanitized)
    widths, found = np.ptp(own.X, axis=0), []
    for code, name in enumerate(context.label.categories):
        X, rows = (
            choose_some(table[label == code], rng)
            for table, label in ((own.X, own.label), (Y, pool.label))
        )
        found.append(
            DensityErrors(
                name,
                plug_in=round_up(DaplPlugIn().measure_class(X, rule, widths, rng)),
                held_out=round_bound(bound_own_distance(X, rule, widths, rng)),
                mixture=round_bound(bound_distance(X, rows, rule, widths)),
            )
        )
    return tuple(found)


def choose_some(X: Floats, rng: np.random.Generator) -> Floats:
    """Return rows in random order, at most as many as the metrics use of a class."""
    return np.asarray(X[rng.permutation(len(X))[:MAX_CLASS_RECORDS]])


def round_bound(value: float) -> float:
    """Return a lower bound that holds after rounding, too."""
    return round_down(max(0.0, value))


def bound_own_distance(
    X: Floats, rule: BandwidthRule, widths: Floats, rng: np.random.Generator
) -> float:
    """Return a lower bound of the distance of the kernel density of half of the records.

    The other half shows the true density. ``dapl_held_out`` asks only where the kernel density is
    large, so that it does not notice one that is too wide.
    """
    made_of, others = np.array_split(X, 2)
    if len(others) < MIN_CLASS_ROWS:
        return 0.0  # too few to prove any distance
    density = Density(made_of, rule, widths)
    return bound_distance(others, density.draw(len(X), rng), rule, widths)


def bound_distance(X: Floats, rows: Floats, rule: BandwidthRule, widths: Floats) -> float:
    """Return a lower bound of the distance of the density of rows from that of records.

    Both are in random order. A set is chosen where the rows are denser than the records, by three
    quarters of both. The bound is the share of the other rows minus the share of the other records
    in it. If rows were drawn around these records, it is smaller than with records of other
    persons.
    """
    if min(len(X), len(rows)) < MIN_CLASS_ROWS:
        return 0.0  # too few to prove any distance
    parts = [split_in_three(table) for table in (rows, X)]
    pool, own = (Density(fitted, rule, widths) for fitted, _, _ in parts)
    if not pool.exists or not own.exists:
        return 1.0

    def compare(points: Floats) -> Floats:
        """Return the log ratio of both densities, 0 where there is neither."""
        at_pool, at_own = pool.log(points), own.log(points)
        is_nowhere = np.isneginf(at_pool) & np.isneginf(at_own)
        return np.subtract(at_pool, at_own, out=np.zeros(len(points)), where=~is_nowhere)

    (_, rows_to_choose, rows_to_judge), (_, chosen, judged) = parts
    level = find_best_level(compare(rows_to_choose), compare(chosen))
    return float(np.mean(compare(rows_to_judge) > level) - np.mean(compare(judged) > level))


def split_in_three(table: Floats) -> list[Floats]:
    """Return half of the rows, and two quarters."""
    return np.split(table, [len(table) // 2, 3 * len(table) // 4])
