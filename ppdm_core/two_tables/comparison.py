"""Compare two tables of any origin: common columns, common scale, and whose row is whose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppdm_core.audit.draws import OriginalTable, ReleaseDraw
from ppdm_core.model.arrays import Codes, Floats, Ints
from ppdm_core.model.errors import BadInput
from ppdm_core.model.release import PublicParameters
from ppdm_core.model.schema import Categorical, Schema
from ppdm_core.two_tables.column_alignment import find_unique_values
from ppdm_core.two_tables.encoding import encode_tables, find_new_categories
from ppdm_core.two_tables.frame import (
    Frame,
    can_be_compared,
    common_columns,
    describe_columns,
    describe_own_space,
    describe_released_columns,
    find_rotation,
    is_constant,
    list_numeric,
    make_frame,
    scale_factor,
)
from ppdm_core.two_tables.mixed_records import (
    find_moved_columns,
    find_permuted_columns,
    has_moments_of_records,
)
from ppdm_core.two_tables.order_certainty import is_order_certain
from ppdm_core.two_tables.row_order import (
    find_revealed_orders,
    find_sorted_columns,
    has_position_trend,
)
from ppdm_core.two_tables.tables import Table

MIN_ROWS = 3
UNKNOWN_RECORD = -1  # source of a row, where that is not known
NO_COMMON_GROUND = (
    "No released column was recognised as an original one, and it is not known which row belongs "
    "to which record, so that attacks have little to work with."
)
UNCERTAIN_ORDER = (
    "The rows are in an order of their own, and the noise is so strong that an order by the "
    "original would not be noticed. Sort the rows by a released column before handing them out: "
    "then they have no other order."
)

MIXED_RECORDS = (
    "The columns are related exactly as those of the original are: their products agree better "
    "than in independent rows. Records may be mixed in a way that can be undone. Draw rows "
    "independently, or add more noise."
)


@dataclass(frozen=True, eq=False)
class TableComparison:
    """Two tables in common columns and scale. Record numbers are rows of the original table."""

    truth: OriginalTable
    draw: ReleaseDraw  # the release; without alignment the source of every row is unknown
    aligned: bool = True  # there are as many rows as records, so row i may belong to record i
    is_declared_aligned: bool = True  # row i does belong to record i
    all_persons: OriginalTable | None = None  # the original records, then those of the control
    known: Ints | None = None  # records that were given; None: as many as the policy says
    sample: Floats | None = None  # (p, d) that was given; None: drawn from the original
    left_out: Mapping[str, str] = field(default_factory=dict)  # column: why
    unread: tuple[str, ...] = ()  # released columns that no attack reads
    copied: tuple[str, ...] = ()  # those that identify persons, with the values of the original
    new_categories: tuple[str, ...] = ()  # columns with released values that no attack reads
    varied_text: tuple[str, ...] = ()  # columns that the released file writes in several ways
    matched: Mapping[str, str] = field(default_factory=dict)  # released -> original, by values
    control_overlap: int = 0  # rows of the control that are original records, left out
    sorted_columns: tuple[str, ...] = ()  # of the original, which has the order of the release
    revealed_orders: tuple[str, ...] = ()  # by what of the original the release is sorted
    has_position_trend: bool = False  # released values, or those of aligned records, follow it
    has_uncertain_order: bool = False  # an order by the original would not be noticed
    permuted_columns: tuple[str, ...] = ()  # with the values of the original, in another order
    moved_columns: tuple[str, ...] = ()  # whose values stand some rows from their records
    has_moments_of_records: bool = False  # which differ less than those of independent rows

    @property
    def is_common(self) -> bool:
        return self.draw.public.space == "original"

    @property
    def doubts(self) -> tuple[str, ...]:
        """Why a PASS is not possible, whatever is measured."""
        found = [] if self.is_common or self.is_declared_aligned else [NO_COMMON_GROUND]
        if self.sorted_columns:
            found.append(
                f"The original is sorted by {quote_names(self.sorted_columns)}, and the release "
                "has the same order, which places every person. Shuffle the rows before handing "
                "them out."
            )
        elif self.has_position_trend:
            found.append(
                "Values depend on the position of their row, so that the order of the rows may "
                "place persons. Shuffle the rows before handing them out."
            )
        elif self.has_uncertain_order and self.is_common:
            found.append(UNCERTAIN_ORDER)
        if self.has_moments_of_records:
            found.append(MIXED_RECORDS)
        if self.permuted_columns:
            found.append(
                f"The values of {quote_names(self.permuted_columns)} are exactly those of the "
                "original, in another order. Whoever can compute this order again, for example "
                "from a guessed seed, knows whose value each one is. Add noise to them."
            )
        if self.new_categories:
            found.append(
                f"The release has values of {quote_names(self.new_categories)} that the original "
                "does not have, and no attack reads them. Use the values of the original, or "
                "change those of the original in the same way."
            )
        if self.varied_text:
            found.append(
                f"The released file writes {quote_names(self.varied_text)} in several ways that "
                "the values do not explain (digits, quotes, spaces), and no attack reads them. "
                "Write the file anew in one format before handing it out."
            )
        return tuple(found)

    @property
    def leaks(self) -> tuple[str, ...]:
        """What the release gives away for certain, besides its values."""
        found = []
        if self.revealed_orders:
            found.append(
                f"The rows are sorted by {self.revealed_orders[0]} of the original, which places "
                "every person. Shuffle the rows before handing them out."
            )
        if self.moved_columns:
            found.append(
                f"The values of {quote_names(self.moved_columns)} are those of the original, moved "
                "or transformed along the rows, with little noise. Anyone can undo this. Add more "
                "noise."
            )
        return tuple(found)


def compare_tables(
    original: Table,
    released: Table,
    *,
    control: Table | None = None,
    known: Table | None = None,
    sample: Table | None = None,
    aligned: bool | None = None,
    label: str | None = None,
) -> TableComparison:
    """Return the two tables in common columns and scale, with control and known records.

    With as many rows as records, both readings are attacked: rows that belong to records in this
    order, and rows in an order of their own. ``aligned`` says which one is right; None: the first,
    if the numbers are equal.
    """
    check_sizes(original, released, aligned)
    new_categories = find_new_categories(original, released, label)
    varied_text = released.varied_text
    original, released, *more = encode_tables(
        [original, released, *filter(None, (control, known, sample))], label
    )
    rest = iter(more)
    control, known, sample = (each and next(rest) for each in (control, known, sample))
    is_declared_aligned = original.n == released.n if aligned is None else aligned
    aligned = original.n == released.n
    frame, X, Y, public = scale_tables(original, released, label, aligned)
    tables = [original, released, *([control] if control else [])]
    category, codes = encode_labels(tables, label)
    schema = Schema(describe_columns(frame, X), label=category)
    truth = OriginalTable(X, codes[0], schema, offset=frame.offset, unit=frame.unit)
    draw = ReleaseDraw(
        Y,
        public,
        source=None if aligned else np.full(len(Y), UNKNOWN_RECORD),
        label=codes[1],
        cells=released.numbers(frame.released),
    )
    comparison = TableComparison(
        truth,
        draw,
        aligned,
        is_declared_aligned,
        left_out=frame.left_out,
        unread=tuple(name for name in frame.left_out if is_varied(released, name)),
        copied=tuple(name for name in frame.left_out if is_copied(original, released, name)),
        new_categories=new_categories,
        varied_text=varied_text,
        matched=frame.matched,
    )
    renamed = rename_matched(released, frame.matched)
    comparison = replace(
        add_row_order(comparison, original, renamed, label),
        permuted_columns=tuple(find_permuted_columns(original, renamed, label)),
        moved_columns=tuple(find_moved_columns(original, renamed, label)),
        has_moments_of_records=has_moments_of_records(original, renamed, label),
    )
    if control is not None:
        outside = frame.place(control)
        check_outside(X, outside, control)
        others = ~is_in(outside, X)  # a record that is in the release would hide a breach
        persons = OriginalTable(
            np.vstack([X, outside[others]]),
            np.concatenate([codes[0], codes[2][others]]),
            schema,
            offset=frame.offset,
            unit=frame.unit,
        )
        members = np.arange(len(X))
        draw, overlap = replace(draw, members=members), int(np.sum(~others))
        comparison = replace(comparison, all_persons=persons, draw=draw, control_overlap=overlap)
    if known is not None:
        comparison = replace(comparison, known=find_known(X, frame.place(known), known))
    if sample is not None:
        comparison = replace(comparison, sample=frame.place(sample))
    return comparison


def rename_matched(released: Table, matched: Mapping[str, str]) -> Table:
    """Return the release with the original names of matched columns, if they are unambiguous."""
    names = {name: matched.get(name, name) for name in released.columns}
    if len(set(names.values())) < len(names):
        return released
    columns = {names[name]: cells for name, cells in released.columns.items()}
    return replace(released, columns=columns)


def add_row_order(
    comparison: TableComparison, original: Table, released: Table, label: str | None
) -> TableComparison:
    """Return the comparison with what the order of the rows gives away."""
    read = [released, *([original] if comparison.is_declared_aligned else [])]
    trend = any(has_position_trend(table, label) for table in read)
    comparison = replace(comparison, has_position_trend=trend)
    if comparison.is_declared_aligned:
        in_order = tuple(find_sorted_columns(original, label))
        if in_order:
            return replace(comparison, sorted_columns=in_order)
    orders = tuple(find_revealed_orders(original, released, label))
    is_uncertain = not comparison.is_declared_aligned and not is_order_certain(
        original, released, label
    )
    return replace(comparison, revealed_orders=orders, has_uncertain_order=is_uncertain)


def quote_names(names: tuple[str, ...]) -> str:
    """Return names in quotation marks, the first three of them."""
    shown = ", ".join(f"'{name}'" for name in names[:3])
    return f"{shown} and {len(names) - 3} more" if len(names) > 3 else shown


def scale_tables(
    original: Table, released: Table, label: str | None, aligned: bool
) -> tuple[Frame, Floats, Floats, PublicParameters]:
    """Return the frame, both tables in it, and what is known of the map between them."""
    same = common_columns(original, released, label, aligned)
    frame = make_frame(original, released, label, same)
    frames = [frame] if aligned else []
    others = [name for name in list_numeric(released, label) if name not in frame.released]
    rest = [name for name in others if not is_constant(released, name)]
    if aligned and rest and all(can_be_compared(released, name) for name in rest):
        frames.append(
            make_frame(original, released, label, {})
        )  # rotated under some of the old names
    for each in frames:
        if rotated := find_rotation(original, released, each):
            return rotated
    X, Y = frame.place(original), released.numbers(frame.released)
    if frame.is_common:
        return frame, X, (Y - frame.offset) / frame.unit, describe_released_columns(frame)
    return frame, X, Y * scale_factor(X, Y), describe_own_space(frame)


def is_varied(table: Table, name: str) -> bool:
    """Return whether a column has more than one value."""
    return name in table.columns and len(set(table.columns[name].tolist())) > 1


def is_copied(original: Table, released: Table, name: str) -> bool:
    """Return whether most released cells are values that one original record holds."""
    if name not in original.columns or name not in released.columns:
        return False
    ours, theirs = (table.columns[name].astype(str) for table in (original, released))
    return bool(np.mean(np.isin(theirs, find_unique_values(ours))) > 0.5)


def check_sizes(original: Table, released: Table, aligned: bool | None) -> None:
    """Check that both tables have enough rows, and equally many if they must be aligned."""
    for table in (original, released):
        if table.n < MIN_ROWS:
            raise BadInput(
                f"{table.name} has fewer than {MIN_ROWS} rows.",
                file=table.name,
                remedy="Give a table with more.",
            )
    if aligned and original.n != released.n:
        raise BadInput(
            f"{original.name} has {original.n:,} rows and {released.name} {released.n:,}, so row i "
            "of one is not row i of the other.",
            file=released.name,
            remedy="Use --unaligned (aligned=False) if it is not known whose row is whose.",
        )


def encode_labels(tables: list[Table], label: str | None) -> tuple[Categorical | None, list[Codes]]:
    """Return the label's categories, and the codes of each table."""
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
    words = [np.array([normalize_class(cell) for cell in table.columns[label]]) for table in tables]
    categories, codes = np.unique(np.concatenate(words), return_inverse=True)
    ends = np.cumsum([table.n for table in tables])[:-1]
    parts: list[Codes] = np.split(codes.astype(np.int32), ends)
    return Categorical(label, tuple(categories.tolist())), parts


def normalize_class(cell: Any) -> str:
    """Return a class as text: some files hold the class 1 as a number, some as text."""
    try:
        return f"{float(cell):.12g}"
    except (TypeError, ValueError):
        return str(cell)


def check_outside(X: Floats, outside: Floats, control: Table) -> None:
    """Check that the control holds enough persons who are not in the original."""
    if len(outside) < MIN_ROWS:
        raise BadInput(
            f"{control.name} has fewer than {MIN_ROWS} rows.",
            file=control.name,
            remedy="Give more persons who are not in the release.",
        )
    inside = int(np.sum(is_in(outside, X)))
    if 2 * inside > len(outside):
        raise BadInput(
            f"{inside:,} of the {len(outside):,} rows of {control.name} are rows of the original.",
            file=control.name,
            remedy="The control must hold persons who are not in the release.",
        )


def is_in(A: Floats, B: Floats) -> NDArray[np.bool_]:
    """Return which rows of ``A`` are rows of ``B``."""
    _, group = np.unique(np.vstack([B, A]) + 0.0, axis=0, return_inverse=True)
    group = group.ravel()
    return np.isin(group[len(B) :], group[: len(B)])


def find_known(X: Floats, known: Floats, table: Table) -> Ints:
    """Return the records with these values; equal ones count as often as they are given."""
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
