"""The columns and the scale in which two tables of any origin are compared."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from ppdm_core.model.arrays import Floats
from ppdm_core.model.errors import BadInput
from ppdm_core.model.release import PublicParameters
from ppdm_core.model.schema import Numeric
from ppdm_core.numerics.distances import compute_distances
from ppdm_core.two_tables.column_alignment import match_by_distribution, match_by_value
from ppdm_core.two_tables.tables import Table

MAX_COMPARED_ROWS = 400  # rows whose distances show whether a release is a rotated copy
MAX_DISTANCE_LOSS = 1e-6  # relative error up to which distances count as kept


@dataclass(frozen=True, eq=False)
class Frame:
    """The columns that are compared, and their unit."""

    names: list[str]  # of the original
    released: list[str]
    offset: Floats
    unit: Floats
    left_out: dict[str, str]
    is_common: bool  # released column j is original column j
    matched: Mapping[str, str] = field(default_factory=dict)  # released -> original, by values

    def place(self, table: Table) -> Floats:
        """Return the original columns of a table, scaled."""
        return (table.numbers(self.names) - self.offset) / self.unit


def common_columns(
    original: Table, released: Table, label: str | None, aligned: bool
) -> dict[str, str]:
    """Map original columns to released ones with the same name, or else the same values."""
    ours, theirs = list_numeric(original, label), list_numeric(released, label)
    same = {name: name for name in ours if name in theirs}
    same |= find_renamed(original, ours, released, theirs, aligned)
    return {name: same[name] for name in ours if name in same and not is_constant(original, name)}


def list_numeric(table: Table, label: str | None) -> list[str]:
    """Return the numeric columns except the label."""
    return [name for name in table.numeric() if name != label]


def make_frame(
    original: Table, released: Table, label: str | None, same: Mapping[str, str]
) -> Frame:
    """Return a frame of the columns that are the ``same``, of all columns if there are none."""
    ours, theirs = list_numeric(original, label), list_numeric(released, label)
    left_out = {name: "constant" for name in ours if is_constant(original, name)}
    names = list(same) or [name for name in ours if name not in left_out]
    kept = list(same.values()) or [name for name in theirs if not is_constant(released, name)]
    if not names or not kept:
        lacking = original if not names else released
        raise BadInput(
            f"{lacking.name} has no numeric column that could be compared.",
            file=lacking.name,
            remedy="The attacks work on numbers: give both files columns of numbers that vary.",
        )
    for name in dict.fromkeys([*original.columns, *released.columns]):
        if name not in names and name not in kept and name != label:
            left_out.setdefault(name, explain_left_out(name, original, released))
    offset = original.numbers(names).min(axis=0)
    unit = original.numbers(names).max(axis=0) - offset
    matched = {other: name for name, other in same.items() if other != name}
    return Frame(names, kept, offset, unit, left_out, bool(same), matched)


def find_renamed(
    original: Table, ours: list[str], released: Table, theirs: list[str], aligned: bool
) -> dict[str, str]:
    """Map original columns to released ones with another name and the same values.

    Columns that only have the same distribution count if that explains most of the others: single
    columns of a release in a space of its own may resemble original ones by accident.
    """
    shared = {*ours} & {*theirs}
    mine = [name for name in ours if name not in shared and can_be_compared(original, name)]
    other = [name for name in theirs if name not in shared and can_be_compared(released, name)]
    found = match_by_value(original, mine, released, other, aligned)
    mine = [name for name in mine if name not in found]
    other = [name for name in other if name not in found.values()]
    similar = match_by_distribution(original, mine, released, other)
    return found | similar if 2 * len(similar) > len(other) else found


def can_be_compared(table: Table, name: str) -> bool:
    """Return whether a column is finite and not constant."""
    return bool(np.isfinite(table.columns[name]).all()) and not is_constant(table, name)


def explain_left_out(name: str, original: Table, released: Table) -> str:
    """Return why a column is not compared."""
    if name in original.numeric():
        return "no numbers in the release" if name in released.columns else "not in the release"
    if name in released.numeric():
        return "no numbers in the original" if name in original.columns else "not in the original"
    return "no numbers"


def is_constant(table: Table, name: str) -> bool:
    """Return whether a column has one value."""
    cells = table.columns[name]
    return bool(np.all(cells == cells[0]))


def describe_columns(frame: Frame, X: Floats) -> tuple[Numeric, ...]:
    """Return the compared columns with the bounds of the original."""
    ends = zip(frame.names, X.min(axis=0).tolist(), X.max(axis=0).tolist(), strict=True)
    return tuple(Numeric(name, low, high, from_data=True) for name, low, high in ends)


def describe_released_columns(frame: Frame) -> PublicParameters:
    """Return public parameters that say: a released value is the original one."""
    d = len(frame.names)
    return PublicParameters(
        "unknown", "original", tuple(frame.names), centre=np.zeros(d), loadings=np.eye(d)
    )


def describe_own_space(frame: Frame, preserves_distances: bool = False) -> PublicParameters:
    """Return public parameters that say: the released columns are not the original ones."""
    return PublicParameters(
        "unknown",
        "rotated",
        tuple(frame.released),
        preserves_distances=preserves_distances,
        facts={"translation": "secret"},
    )


def find_rotation(
    original: Table, released: Table, frame: Frame
) -> tuple[Frame, Floats, Floats, PublicParameters] | None:
    """Return the comparison in the scale in which the release keeps distances, if there is one.

    A tool may have divided columns by their ranges, by their deviations, or not at all before it
    rotated them, and may have written the result under the old names.
    """
    raw, Y = original.numbers(frame.names), released.numbers(frame.released)
    if frame.is_common and np.allclose(raw, Y, rtol=1e-3, atol=1e-3 * frame.unit.max()):
        return None
    zero, one = np.zeros(raw.shape[1]), np.ones(raw.shape[1])
    scales = [(frame.offset, frame.unit), (raw.mean(axis=0), raw.std(axis=0, ddof=1)), (zero, one)]
    scales = [(offset, unit) for offset, unit in scales if np.all(unit > 0)]  # none underflowed
    losses = [measure_distance_loss((raw - offset) / unit, Y) for offset, unit in scales]
    best = int(np.argmin(losses))
    if not losses[best] <= MAX_DISTANCE_LOSS:
        return None
    offset, unit = scales[best]
    frame = replace(frame, offset=offset, unit=unit, is_common=False, matched={})
    X = (raw - offset) / unit
    return frame, X, Y * scale_factor(X, Y), describe_own_space(frame, preserves_distances=True)


def scale_factor(X: Floats, Y: Floats) -> float:
    """Return the factor that gives a release the total variance of the original."""
    size = compute_spread(Y)
    factor = compute_spread(X) / size if size > 0 else 1.0
    return factor if 0 < factor < math.inf else 1.0


def compute_spread(Z: Floats) -> float:
    """Return the root of the total variance, also where squares would underflow or overflow."""
    centred = Z - Z.mean(axis=0)
    size = float(np.abs(centred).max())
    return size * float(np.sqrt((centred / size).var(axis=0).sum())) if size > 0 else 0.0


def measure_distance_loss(X: Floats, Y: Floats) -> float:
    """Return by how much distances differ after the best change of scale."""
    step = -(-len(X) // MAX_COMPARED_ROWS)
    X, Y = X[::step], Y[::step]
    if not compute_spread(X) or not compute_spread(Y):
        return math.inf
    units = [(Z - Z.mean(axis=0)) / compute_spread(Z) for Z in (X, Y)]
    D, E = (compute_distances(Z, Z) for Z in units)
    return float(np.linalg.norm(D - E) / np.linalg.norm(D))
