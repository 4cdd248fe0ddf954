"""The validated table: numbers, codes and keys from a raw table.

Of the identifiers it holds those that are numbers, which the leak scan looks for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa

from ppdm_core.model.errors import Defect
from ppdm_core.model.schema import Categorical, Numeric, Schema
from ppdm_core.numerics.rounding import round_outward
from warehouse.cell_changes import CellChanges, count_changes
from warehouse.column_survey import is_numeric_feature, survey_key
from warehouse.columns import OTHER, RESERVED, Column
from warehouse.raw_profile import ROWS, ROWS_LEFT
from warehouse.sql import (
    KEY,
    LABEL,
    ROW,
    build_row_filter,
    cast_to_number,
    cast_to_text,
    column_types,
    hide_values,
    literal,
    quote_name,
    register_once,
)
from warehouse.table_digest import Totals, digest_totals, sum_hashes

if TYPE_CHECKING:
    from warehouse.same_data.cell_digests import CellDigests

Figures = Mapping[str, Any]
MakeKeys = Callable[[Sequence[bytes]], Sequence[bytes]]

BATCH_ROWS = 122_880  # in memory at a time
BATCH_CELLS = 4_000_000  # the same: wide tables have fewer rows
KEY_BYTES = 16
SURVEY_FIGURES = ("least", "most", "median")
CHUNK = f"{RESERVED}chunk"
IDENTITY = f"{RESERVED}identity"
COPY = """
with cells as (
    select {row} as source_row, {identity} as identity{cells}{ids}{compared}
    from {table}
    where {row} >= {start} and {row} < {stop} and {kept}
)
select
    {offset} + row_number() over (order by source_row) - 1 as {row},
    identity as {name}{values}{numbers}{compared_names}
from cells
order by source_row
"""


@dataclass(frozen=True)
class Validated:
    """What was written to a validated table."""

    n: int
    digest: str  # of keys, features and label; of no keys if they are places
    schema: Schema
    changes: CellChanges


@dataclass(frozen=True)
class NumericSurvey:
    """Bounds and median of a numeric feature."""

    bounds: Numeric
    median: float | None


@hide_values("Writing the validated table")
def write_validated(
    db: duckdb.DuckDBPyConnection,
    raw_table: str,
    validated_table: str,
    columns: tuple[Column, ...],
    figures: Figures,
    record_id: str | None,
    make_keys: MakeKeys,
    digests: CellDigests | None = None,
) -> Validated:
    """Create the validated table; the caller owns the transaction.

    ``figures`` are those of ``profile`` with those of ``list_survey_figures``. ``digests`` are
    written in the same pass over the raw table.
    A cell that no rule covers violates NOT NULL, so that no unchecked cell is written.
    """
    cells = _cell_expressions(columns, column_types(db, raw_table))
    total, n = figures[ROWS], figures[ROWS_LEFT]
    found = _read_survey(columns, figures)
    db.execute(f"create table {validated_table} ({_declare_columns(columns)})").fetchall()
    identifiers = list_identifiers(columns)
    written, totals = 0, []
    digested = [*([KEY] if record_id else []), *_list_features(columns), LABEL]
    compared = digests.expressions if digests else {}
    batch_rows = min(BATCH_ROWS, max(1, BATCH_CELLS // (len(columns) + len(compared))))
    for start in range(0, total, batch_rows):
        statement = COPY.format(
            row=ROW,
            identity=ROW if record_id is None else f"encode({cast_to_text(record_id)})",
            cells="".join(f", {cell} as c{i}" for i, cell in cells.items()),
            ids="".join(
                f", try_cast({quote_name(name)} as double) as i{k}"
                for k, name in enumerate(identifiers)
            ),
            table=raw_table,
            start=start,
            stop=start + batch_rows,
            kept=build_row_filter(columns),
            offset=written,
            name=IDENTITY,
            values="".join(_list_values(columns, found)),
            numbers="".join(f", i{k} as {id_column(k)}" for k in range(len(identifiers))),
            compared="".join(f", {cell} as {name}" for name, cell in compared.items()),
            compared_names="".join(f", {name}" for name in compared),
        )
        chunk = _replace_identities(db.sql(statement).to_arrow_table(), make_keys)
        if digests:
            chunk = digests.take(chunk)
        totals.append(_append(db, validated_table, chunk, digested))
        written += chunk.num_rows
    if written != n:
        raise Defect(f"The validated table has {written} rows in place of {n}.")
    return Validated(
        n=n,
        digest=digest_totals(digested, totals),
        schema=_build_schema(columns, found),
        changes=count_changes(figures, columns),
    )


def list_identifiers(columns: Sequence[Column]) -> list[str]:
    """Return the names of the identifiers; the table holds their cells that are numbers."""
    return [column.name for column in columns if column.role == "identifier"]


def id_column(k: int) -> str:
    """Return the column of the numbers in identifier ``k``."""
    return f"{RESERVED}id_{k}"


def _list_features(columns: Sequence[Column]) -> list[str]:
    return [column.name for column in columns if column.role == "feature"]


def _cell_expressions(columns: tuple[Column, ...], types: dict[str, str]) -> dict[int, str]:
    """Return SQL for the cell of each feature and label, as double or text, by position."""
    return {
        i: cast_to_number(column.name, types[column.name])
        if is_numeric_feature(column)
        else cast_to_text(column.name)
        for i, column in enumerate(columns)
        if column.role in ("feature", "label")
    }


def _read_survey(columns: Sequence[Column], figures: Figures) -> dict[str, NumericSurvey]:
    return {
        column.name: _build_survey(
            column, *(figures[survey_key(figure, column)] for figure in SURVEY_FIGURES)
        )
        for column in columns
        if is_numeric_feature(column)
    }


def _build_survey(column: Column, least: float, most: float, median: float) -> NumericSurvey:
    low = round_outward(least, up=False) if column.low == "from_data" else column.low
    high = round_outward(most) if column.high == "from_data" else column.high
    if low is None or high is None:
        raise Defect(f"Column '{column.name}' has no bounds.", column=column.name)
    # Adding 0.0 turns a negative zero into zero.
    bounds = Numeric(
        column.name,
        float(low) + 0.0,
        float(high) + 0.0,
        from_data=column.is_from_data,
        imputed=column.is_imputed,
    )
    return NumericSurvey(bounds, median)


def _declare_columns(columns: tuple[Column, ...]) -> str:
    features = (
        f"{quote_name(column.name)} {kind} not null"
        for column in columns
        for kind in ("double" if is_numeric_feature(column) else "integer",)
        if column.role == "feature"
    )
    numbers = (f"{id_column(k)} double" for k in range(len(list_identifiers(columns))))
    own = (f"{ROW} bigint not null", f"{KEY} blob not null")
    return ", ".join([*own, *features, f"{LABEL} integer not null", *numbers])


def _list_values(columns: tuple[Column, ...], found: dict[str, NumericSurvey]) -> list[str]:
    values, label = [], "-1"
    for i, column in enumerate(columns):
        if is_numeric_feature(column):
            value = _number_expression(f"c{i}", column, found[column.name])
            values.append(f", {value} as {quote_name(column.name)}")
        elif column.role == "feature":
            values.append(f", {_code_expression(f'c{i}', column)} as {quote_name(column.name)}")
        elif column.role == "label":
            label = _code_expression(f"c{i}", column)
    return [*values, f", ({label})::integer as {LABEL}"]


def _number_expression(cell: str, column: Column, found: NumericSurvey) -> str:
    """Return SQL for an imputed cell inside its bounds, without -0.0; null if no rule covers it."""
    value = cell if found.median is None else f"coalesce({cell}, {literal(found.median)})"
    low, high = literal(found.bounds.low), literal(found.bounds.high)
    inside = f"least(greatest({value}, {low}), {high})"
    allowed = f"isfinite({value})"
    if column.outside == "reject":
        allowed += f" and {value} between {low} and {high}"
    # It must be true, not merely not false: isfinite(null) is null, greatest() skips nulls.
    return f"case when {allowed} then case when {inside} = 0 then 0.0 else {inside} end end"


def _code_expression(cell: str, column: Column) -> str:
    """Return SQL for the place of a cell among the categories; null if no rule covers it.

    A missing cell that is a category of its own has the code -1.
    """
    categories = ", ".join(literal(category) for category in column.categories)
    place = f"list_position([{categories}], {cell})"
    if column.outside == OTHER:
        rest = column.categories.index(OTHER) + 1
        place = f"case when {cell} is not null then coalesce({place}, {rest}) end"
    code = f"{place} - 1"
    if column.missing == "keep":
        code = f"case when {cell} is null then -1 else {code} end"
    return f"({code})::integer"


def _replace_identities(chunk: Any, make_keys: MakeKeys) -> Any:
    """Return the chunk with keys in place of the identities."""
    identities = chunk.column(IDENTITY).to_pylist()
    if None in identities:
        raise Defect("A record without an id got past the checks.")
    if identities and isinstance(identities[0], int):
        identities = [position.to_bytes(8, "big") for position in identities]
    keys = make_keys(identities) if identities else []
    if len(keys) != len(identities) or any(len(key) != KEY_BYTES for key in keys):
        raise Defect("The keys of the records are not 16 bytes each.")
    place = chunk.schema.get_field_index(IDENTITY)
    return chunk.set_column(place, KEY, pa.array(list(keys), type=pa.binary()))


def _append(
    db: duckdb.DuckDBPyConnection, table: str, chunk: Any, digested: Sequence[str]
) -> Totals:
    """Append a chunk to the table, and return what the digest of the table needs of it."""
    with register_once(db, CHUNK, chunk):
        db.execute(f"insert into {table} select * from {CHUNK}").fetchall()
    with register_once(db, CHUNK, chunk):
        return sum_hashes(db, CHUNK, digested)


def _build_schema(columns: tuple[Column, ...], found: dict[str, NumericSurvey]) -> Schema:
    categorical = {
        column.name: Categorical(column.name, column.categories, column.missing == "keep")
        for column in columns
        if column.type == "categorical"
    }
    label = next((column.name for column in columns if column.role == "label"), None)
    features = _list_features(columns)
    return Schema(
        numeric=tuple(found[name].bounds for name in features if name in found),
        categorical=tuple(categorical[name] for name in features if name in categorical),
        label=None if label is None else categorical[label],
        drops_rows=any(column.drops_rows for column in columns),
    )


def build_declared_schema(columns: tuple[Column, ...]) -> Schema:
    """Return the schema as far as it is declared; bounds that the data will give are 0 and 1."""
    numeric = filter(is_numeric_feature, columns)
    return _build_schema(
        columns, {each.name: _build_survey(each, 0.0, 1.0, 0.0) for each in numeric}
    )
