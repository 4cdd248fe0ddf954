"""What all draws of a record add up to, for the most exposed record.

Where releases had no ids, what they drew counts for all records: it is added to each of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ppdm_core.model.ledger import LedgerBalance
from warehouse.database import fetch_first
from warehouse.home import create_private, translate_disk_errors
from warehouse.sql import literal
from warehouse.tables import LEDGER_CHARGES, LEDGER_ENTRIES, draws_table

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

    from warehouse.database import Run

ALL_RECORDS = 0  # stands for all records, where they have no ids
NO_DRAWS = f"(select record, draw_high, draw_low, ln_gamma from {LEDGER_CHARGES} where false)"

PRIOR = f"""
    select c.*, isinf(c.ln_gamma) and list_contains($waived, e.method) as is_waived
    from {LEDGER_CHARGES} c join {LEDGER_ENTRIES} e on e.number = c.entry
    where e.dataset = $dataset
    and if($audience is null, c.is_first, e.audience = $audience)
"""
BALANCE = """
with prior as ({prior}),
fresh as (from {draws} d anti join prior using (draw_high, draw_low)),
lines as (
    select record, ln_gamma, is_waived, false as is_new from prior
    union all
    select record, ln_gamma, isinf(ln_gamma) and list_contains($waived, $method), true from fresh
),
sums as (
    select
        record,
        kahan_sum(ln_gamma) filter (not is_new and isfinite(ln_gamma)) as old_sum,
        kahan_sum(ln_gamma) filter (is_new and isfinite(ln_gamma)) as new_sum,
        count(*) filter (not is_new and isinf(ln_gamma)) as drawn,
        count(*) filter (is_new and isinf(ln_gamma)) as drawing,
        count(*) filter (not is_new and isinf(ln_gamma) and not is_waived) as old_open,
        count(*) filter (is_new and isinf(ln_gamma) and not is_waived) as new_open,
        bool_or(is_new) as is_new
    from lines group by record
),
records as (
    select
        record, drawn, drawing, is_new,
        if(old_open > 0, 'infinity'::double, coalesce(old_sum, 0)) as spent,
        if(new_open > 0, 'infinity'::double, coalesce(new_sum, 0)) as asked
    from sums
    union all select {all_records}, 0, 0, false, 0, 0  -- so that there is a line
),
shared as (
    select sum(spent) as spent, sum(asked) as asked, sum(drawn) as drawn, sum(drawing) as drawing
    from records where record = {all_records}
),
totals as (
    select
        is_new,
        if(record = {all_records}, 0, r.spent) + e.spent as spent,
        if(record = {all_records}, 0, r.asked) + e.asked as asked,
        if(record = {all_records}, 0, r.drawn) + e.drawn as drawn,
        if(record = {all_records}, 0, r.drawing) + e.drawing as drawing
    from records r cross join shared e
)
select
    max(spent), max(asked), max(spent + asked), max(drawn), max(drawn + drawing),
    count(*) filter (is_new),
    count(*) filter (spent + asked > $line),
    count(*) filter (drawn + drawing > $draw_line)
from totals
"""


@dataclass(frozen=True)
class LedgerScope:
    """Which charges count for a release, and up to which limits."""

    dataset: str
    audience: str
    method: str
    is_shared: bool = True  # audiences share one total
    waived: tuple[str, ...] = ()  # methods whose missing bound counts for nothing
    ln_limit: float = math.inf  # ln gamma
    draw_limit: float = math.inf
    terms: Mapping[str, Any] = field(default_factory=dict)  # limits and waivers of the policy

    @property
    def query_values(self) -> dict[str, Any]:
        audience = None if self.is_shared else self.audience
        return {"dataset": self.dataset, "audience": audience, "waived": list(self.waived)}


class RecordTotals(NamedTuple):
    """Largest of any record: before, by the new draws, and both; then counts of records."""

    spent: float
    asked: float
    total: float
    drawn: int  # draws without a bound
    drawing: int
    fresh: int  # records with new draws
    over: int
    draws_over: int


def compute_totals(
    db: duckdb.DuckDBPyConnection, scope: LedgerScope, draws: str = NO_DRAWS
) -> RecordTotals:
    """Return the totals of the ledger, and of a table of new draws in addition."""
    query = BALANCE.format(prior=PRIOR, draws=draws, all_records=ALL_RECORDS)
    limits = {"method": scope.method, "line": scope.ln_limit, "draw_line": scope.draw_limit}
    (row,) = db.execute(query, {**scope.query_values, **limits}).fetchall()
    return RecordTotals(*row[:3], *map(int, row[3:]))


def compute_balance(
    db: duckdb.DuckDBPyConnection, run: Run, scope: LedgerScope, expected: int
) -> LedgerBalance | None:
    """Return the balance before and after this run; None if its draws are missing or incomplete.

    ``expected`` is the number of records that the run draws.
    """
    records = count_drawn_records(db, run)
    if records is None or (records and records != expected):
        return None
    return compute_balance_with(db, draws_table(run), scope, expected, has_ids=records > 0)


def write_draws(draws: pa.RecordBatchReader, folder: Path) -> str:
    """Write draws to a file of a private folder; return them as a table of SQL."""
    import pyarrow.parquet as pq

    path = folder / "draws.parquet"
    with (
        translate_disk_errors(folder),
        create_private(path) as file,
        pq.ParquetWriter(file, draws.schema) as writer,
    ):
        for batch in draws:
            writer.write_batch(batch)
    return f"read_parquet({literal(str(path))})"


def compute_balance_with(
    db: duckdb.DuckDBPyConnection, draws: str, scope: LedgerScope, expected: int, *, has_ids: bool
) -> LedgerBalance:
    """Return the balance before and after a table of ``draws`` of ``expected`` records."""
    found = compute_totals(db, scope, draws)

    def count(records_found: int) -> int:
        return records_found if has_ids or not records_found else expected

    return LedgerBalance(
        spent=found.spent,
        asked=found.asked,
        after=found.total,
        records=count(found.fresh),
        over=count(found.over),
        draws_spent=found.drawn,
        draws_after=found.drawing,
        draws_over=count(found.draws_over),
        unbounded=list_unbounded_methods(db, draws, scope),
        has_ids=has_ids,
    )


def count_drawn_records(db: duckdb.DuckDBPyConnection, run: Run) -> int | None:
    """Return how many records the draws of a run are of, 0 for a table without ids.

    Return None if the draws are missing or contradict each other.
    """
    is_there = fetch_first(
        db,
        """select 1 from information_schema.tables
        where format('{}."{}"', table_schema, table_name) = ?""",
        [draws_table(run)],
    )
    if not is_there:
        return None
    row = fetch_first(
        db,
        "select count(distinct record), count(*) filter (record = ?), count(*), "
        "count(*) filter (isnan(ln_gamma) or ln_gamma < 0), "
        f"count(distinct (draw_high, draw_low)) from {draws_table(run)}",
        [ALL_RECORDS],
    )
    assert row is not None
    records, without_ids, lines, wrong, different = row
    if wrong or not lines or lines != different or (without_ids and records > 1):
        return None
    return 0 if without_ids else records


def list_unbounded_methods(
    db: duckdb.DuckDBPyConnection, draws: str, scope: LedgerScope
) -> tuple[str, ...]:
    """Return the methods of earlier entries and of these draws that have no bound."""
    rows = db.execute(
        f"select distinct method from {LEDGER_ENTRIES} where dataset = $dataset "
        "and unbounded > 0 and ($audience is null or audience = $audience) "
        "and not list_contains($waived, method) union "
        f"select distinct $method from {draws} where isinf(ln_gamma) "
        "and not list_contains($waived, $method) order by 1",
        {**scope.query_values, "method": scope.method},
    ).fetchall()
    return tuple(name for (name,) in rows)
