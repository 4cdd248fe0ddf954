"""Two tables of any origin as something to audit: which columns, which scale, whose rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppdm_core.distances import squared_distances
from ppdm_core.errors import BadInput
from ppdm_core.play import Draw, Truth
from ppdm_core.table import Table
from ppdm_core.types import Categorical, Codes, Floats, Ints, Numeric, Public, Schema

FEWEST_ROWS = 3
COMPARED = 400  # rows whose distances tell whether a release is a turned copy
EXACT = 1e-6  # relative error of distances that are kept
NOBODY = -1  # whose row it is, where that is not known


@dataclass(frozen=True, eq=False)
class Case:
    """What is audited. Numbers of records are places in the original table."""

    truth: Truth
    draw: Draw  # the release; every row belongs to nobody where rows are not aligned
    label: Codes  # (m,) of the released rows
    aligned: bool = True
    everybody: Truth | None = None  # the originals, then people who are not in the release
    known: Ints | None = None  # records that were named; None: as many as the policy says
    sample: Floats | None = None  # (p, d) that was given; None: drawn
    left_out: Mapping[str, str] = field(default_factory=dict)  # column: why
    unread: tuple[str, ...] = ()  # released columns that no attack reads
    copied: tuple[str, ...] = ()  # those of them that name people, as they stand in the original

    @property
    def is_common(self) -> bool:
        return self.draw.public.space == "original"


@dataclass(frozen=True, eq=False)
class Frame:
    """The columns that are compared, and their unit."""

    names: list[str]  # of the original
    released: list[str]
    offset: Floats
    unit: Floats
    left_out: dict[str, str]
    is_common: bool

    def place(self, table: Table) -> Floats:
        """Original columns, scaled."""
        return (table.numbers(self.names) - self.offset) / self.unit


def make_case(
    original: Table,
    released: Table,
    *,
    control: Table | None = None,
    known: Table | None = None,
    sample: Table | None = None,
    aligned: bool = True,
    label: str | None = None,
) -> Case:
    check_sizes(original, released, aligned)
    frame = common_frame(original, released, label)
    X, Y = frame.place(original), released.numbers(frame.released)
    if frame.is_common:
        Y = (Y - frame.offset) / frame.unit
    public = in_the_open(frame) if frame.is_common else in_its_own_space(frame)
    if aligned and (turned := as_turned(original, released, frame, X)):
        frame, X, Y, public = turned
    elif not frame.is_common:
        Y = Y * alike(X, Y)
    tables = [original, released, *([control] if control else [])]
    category, codes = labels_of(tables, label)
    schema = Schema(columns_of(frame, X), label=category)
    truth = Truth(X, codes[0], schema)
    draw = Draw(Y, public, source=None if aligned else np.full(len(Y), NOBODY))
    case = Case(
        truth,
        draw,
        codes[1],
        aligned,
        left_out=frame.left_out,
        unread=tuple(name for name in frame.left_out if is_varied(released, name)),
        copied=tuple(name for name in frame.left_out if is_copied(original, released, name)),
    )
    if control is not None:
        outside = frame.place(control)
        check_outside(X, outside, control)
        others = ~is_in(outside, X)  # whoever is in the release after all would hide a breach
        people = Truth(
            np.vstack([X, outside[others]]), np.concatenate([codes[0], codes[2][others]]), schema
        )
        members = np.arange(len(X))
        case = replace(case, everybody=people, draw=replace(draw, members=members))
    if known is not None:
        case = replace(case, known=find_known(X, frame.place(known), known))
    if sample is not None:
        case = replace(case, sample=frame.place(sample))
    return case


def is_varied(table: Table, name: str) -> bool:
    return name in table.columns and len(set(table.columns[name].tolist())) > 1


def is_copied(original: Table, released: Table, name: str) -> bool:
    """Most released cells are those of one person in the original each."""
    if name not in original.columns or name not in released.columns:
        return False
    ours, theirs = (table.columns[name].astype(str) for table in (original, released))
    values, counts = np.unique(ours, return_counts=True)
    return bool(np.mean(np.isin(theirs, values[counts == 1])) > 0.5)


def check_sizes(original: Table, released: Table, aligned: bool) -> None:
    for table in (original, released):
        if table.n < FEWEST_ROWS:
            raise BadInput(
                f"{table.name} has fewer than {FEWEST_ROWS} rows.",
                file=table.name,
                remedy="Give a table with more.",
            )
    if aligned and original.n != released.n:
        raise BadInput(
            f"{original.name} has {original.n:,} rows and {released.name} {released.n:,}, so row i "
            "of one is not row i of the other.",
            file=released.name,
            remedy="Say --unaligned (aligned=False) if nobody knows whose row is whose.",
        )


def common_frame(original: Table, released: Table, label: str | None) -> Frame:
    """In common are the columns with the same name, if they are most of the released ones."""
    ours = [name for name in original.numeric() if name != label]
    theirs = [name for name in released.numeric() if name != label]
    shared = [name for name in ours if name in theirs]
    is_common = 2 * len(shared) > len(theirs)
    left_out = {name: "constant" for name in ours if is_constant(original, name)}
    names = [name for name in (shared if is_common else ours) if name not in left_out]
    kept = names if is_common else [name for name in theirs if not is_constant(released, name)]
    if not names or not kept:
        lacking = original if not names else released
        raise BadInput(
            f"{lacking.name} has no numeric column that could be compared.",
            file=lacking.name,
            remedy="The attacks work on numbers: give both files columns of numbers that vary.",
        )
    for name in dict.fromkeys([*original.columns, *released.columns]):
        if name not in names and name not in kept and name != label:
            left_out.setdefault(name, why_left_out(name, original, released))
    offset = original.numbers(names).min(axis=0)
    unit = original.numbers(names).max(axis=0) - offset
    return Frame(names, kept, offset, unit, left_out, is_common)


def why_left_out(name: str, original: Table, released: Table) -> str:
    if name in original.numeric():
        return "no numbers in the release" if name in released.columns else "not in the release"
    if name in released.numeric():
        return "no numbers in the original" if name in original.columns else "not in the original"
    return "no numbers"


def is_constant(table: Table, name: str) -> bool:
    cells = table.columns[name]
    return bool(np.all(cells == cells[0]))


def columns_of(frame: Frame, X: Floats) -> tuple[Numeric, ...]:
    ends = zip(frame.names, X.min(axis=0).tolist(), X.max(axis=0).tolist(), strict=True)
    return tuple(Numeric(name, low, high, from_data=True) for name, low, high in ends)


def in_the_open(frame: Frame) -> Public:
    """A released value stands for the original one."""
    d = len(frame.names)
    return Public("unknown", "original", tuple(frame.names), centre=np.zeros(d), loadings=np.eye(d))


def in_its_own_space(frame: Frame, preserves_distances: bool = False) -> Public:
    return Public(
        "unknown",
        "rotated",
        tuple(frame.released),
        preserves_distances=preserves_distances,
        facts={"translation": "secret"},
    )


def as_turned(
    original: Table, released: Table, frame: Frame, X: Floats
) -> tuple[Frame, Floats, Floats, Public] | None:
    """The case in the scale in which the release keeps distances, if there is one.

    A tool may have divided columns by their ranges, by their deviations, or not at all before it
    turned them; and may have written the result under the old names.
    """
    raw, Y = original.numbers(frame.names), released.numbers(frame.released)
    if frame.is_common and np.allclose(raw, Y, rtol=1e-3, atol=1e-3 * frame.unit.max()):
        return None
    zero, one = np.zeros(raw.shape[1]), np.ones(raw.shape[1])
    scales = [(frame.offset, frame.unit), (raw.mean(axis=0), raw.std(axis=0, ddof=1)), (zero, one)]
    losses = [distance_loss((raw - offset) / unit, Y) for offset, unit in scales]
    best = int(np.argmin(losses))
    if losses[best] > EXACT:
        return None
    offset, unit = scales[best]
    frame = replace(frame, offset=offset, unit=unit, is_common=False)
    X = (raw - offset) / unit
    return frame, X, Y * alike(X, Y), in_its_own_space(frame, preserves_distances=True)


def alike(X: Floats, Y: Floats) -> float:
    """The factor that gives a release the total variance of the original."""
    return float(np.sqrt(X.var(axis=0).sum() / Y.var(axis=0).sum()))


def distance_loss(X: Floats, Y: Floats) -> float:
    """By how much distances differ after the best change of scale."""
    step = -(-len(X) // COMPARED)
    D, E = (np.sqrt(distances(Z[::step])) for Z in (X, Y * alike(X, Y)))
    return float(np.linalg.norm(D - E) / np.linalg.norm(D))


def distances(X: Floats) -> Floats:
    return np.vstack([D for _, D in squared_distances(X, X)])


def labels_of(tables: list[Table], label: str | None) -> tuple[Categorical | None, list[Codes]]:
    """The label's categories, and the codes of each table."""
    if label is None:
        return None, [np.full(table.n, -1, dtype=np.int32) for table in tables]
    for table in tables:
        if label not in table.columns:
            raise BadInput(
                f"The label '{label}' is not a column of {table.name}.",
                file=table.name,
                column=label,
                remedy="Name a column that every file has, or leave the label out.",
            )
    words = [np.array([word(cell) for cell in table.columns[label]]) for table in tables]
    categories, codes = np.unique(np.concatenate(words), return_inverse=True)
    ends = np.cumsum([table.n for table in tables])[:-1]
    parts: list[Codes] = np.split(codes.astype(np.int32), ends)
    return Categorical(label, tuple(categories.tolist())), parts


def word(cell: Any) -> str:
    """Some files hold the class 1 as a number, some as text."""
    try:
        return f"{float(cell):.12g}"
    except (TypeError, ValueError):
        return str(cell)


def check_outside(X: Floats, outside: Floats, control: Table) -> None:
    if len(outside) < FEWEST_ROWS:
        raise BadInput(
            f"{control.name} has fewer than {FEWEST_ROWS} rows.",
            file=control.name,
            remedy="Give more people who are not in the release.",
        )
    inside = int(np.sum(is_in(outside, X)))
    if 2 * inside > len(outside):
        raise BadInput(
            f"{inside:,} of the {len(outside):,} rows of {control.name} are rows of the original.",
            file=control.name,
            remedy="The control must hold people who are not in the release.",
        )


def is_in(A: Floats, B: Floats) -> NDArray[np.bool_]:
    """Which rows of ``A`` are rows of ``B``."""
    _, group = np.unique(np.vstack([B, A]) + 0.0, axis=0, return_inverse=True)
    group = group.ravel()
    return np.isin(group[len(B) :], group[: len(B)])


def find_known(X: Floats, known: Floats, table: Table) -> Ints:
    """The records with these values; equal ones count as often as they are named."""
    _, group = np.unique(np.vstack([X, known]) + 0.0, axis=0, return_inverse=True)
    group = group.ravel()
    found: list[int] = []
    for value, times in zip(*np.unique(group[len(X) :], return_counts=True), strict=True):
        records = np.flatnonzero(group[: len(X)] == value)
        if len(records) < times:
            raise BadInput(
                f"{table.name} holds records that the original does not.",
                file=table.name,
                remedy="Known records must be rows of the original, value by value.",
            )
        found.extend(records[:times].tolist())
    return np.array(found, dtype=np.int64)
