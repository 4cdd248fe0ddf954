"""Two tables of any origin as something to audit: which columns, which scale, whose rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppdm_core.audit.simulation import Draw, Truth
from ppdm_core.model.arrays import Codes, Floats, Ints
from ppdm_core.model.errors import BadInput
from ppdm_core.model.release import Public
from ppdm_core.model.schema import Categorical, Schema
from ppdm_core.two_tables.column_alignment import held_by_one
from ppdm_core.two_tables.frame import (
    Frame,
    alike,
    as_turned,
    can_be_compared,
    columns_of,
    common_columns,
    in_its_own_space,
    in_the_open,
    is_constant,
    make_frame,
    numbers_of,
)
from ppdm_core.two_tables.tables import Table

FEWEST_ROWS = 3
NOBODY = -1  # whose row it is, where that is not known
NOTHING_IN_COMMON = (
    "No column of the release could be told to be one of the original, and nobody knows whose row "
    "is whose, so that attacks have little to go by."
)


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
    taken: Mapping[str, str] = field(default_factory=dict)  # released column: original, by values
    insiders: int = 0  # rows of the control that are in the original, and were left out

    @property
    def is_common(self) -> bool:
        return self.draw.public.space == "original"

    @property
    def doubts(self) -> tuple[str, ...]:
        """Why too little is known for a PASS, whatever was measured."""
        return () if self.is_common or self.aligned else (NOTHING_IN_COMMON,)


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
    frame, X, Y, public = compared(original, released, label, aligned)
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
        taken=frame.taken,
    )
    if control is not None:
        outside = frame.place(control)
        check_outside(X, outside, control)
        others = ~is_in(outside, X)  # whoever is in the release after all would hide a breach
        people = Truth(
            np.vstack([X, outside[others]]), np.concatenate([codes[0], codes[2][others]]), schema
        )
        members = np.arange(len(X))
        draw, insiders = replace(draw, members=members), int(np.sum(~others))
        case = replace(case, everybody=people, draw=draw, insiders=insiders)
    if known is not None:
        case = replace(case, known=find_known(X, frame.place(known), known))
    if sample is not None:
        case = replace(case, sample=frame.place(sample))
    return case


def compared(
    original: Table, released: Table, label: str | None, aligned: bool
) -> tuple[Frame, Floats, Floats, Public]:
    """The frame, both tables in it, and what is known of how one came from the other."""
    same = common_columns(original, released, label, aligned)
    frame = make_frame(original, released, label, same)
    frames = [frame] if aligned else []
    others = [name for name in numbers_of(released, label) if name not in frame.released]
    rest = [name for name in others if not is_constant(released, name)]
    if aligned and rest and all(can_be_compared(released, name) for name in rest):
        frames.append(make_frame(original, released, label, {}))  # turned under some old names
    for each in frames:
        if turned := as_turned(original, released, each):
            return turned
    X, Y = frame.place(original), released.numbers(frame.released)
    if frame.is_common:
        return frame, X, (Y - frame.offset) / frame.unit, in_the_open(frame)
    return frame, X, Y * alike(X, Y), in_its_own_space(frame)


def is_varied(table: Table, name: str) -> bool:
    return name in table.columns and len(set(table.columns[name].tolist())) > 1


def is_copied(original: Table, released: Table, name: str) -> bool:
    """Most released cells are those of one person in the original each."""
    if name not in original.columns or name not in released.columns:
        return False
    ours, theirs = (table.columns[name].astype(str) for table in (original, released))
    return bool(np.mean(np.isin(theirs, held_by_one(ours))) > 0.5)


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
