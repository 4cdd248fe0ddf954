"""What all draws of a record add up to, for the record that is worst off.

Where releases had no ids, what they drew counts for everybody: it is added to every record's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from ppdm_core.model.ledger import Account
from warehouse.database import first

if TYPE_CHECKING:
    import duckdb

    from warehouse.database import Run

EVERYBODY = 0  # stands for all records, where they have no ids
NO_DRAWS = "(select record, draw_high, draw_low, ln_gamma from ledger.charge where false)"

PRIOR = """
    select c.*, isinf(c.ln_gamma) and list_contains($waived, e.method) as is_waived
    from ledger.charge c join ledger.entry e on e.number = c.entry
    where e.dataset = $dataset
    and if($audience is null, c.is_first, e.audience = $audience or e.kind = 'inherited')
"""
ACCOUNT = """
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
    union all select {everybody}, 0, 0, false, 0, 0  -- so that there is a line
),
everybody as (
    select sum(spent) as spent, sum(asked) as asked, sum(drawn) as drawn, sum(drawing) as drawing
    from records where record = {everybody}
),
totals as (
    select
        is_new,
        if(record = {everybody}, 0, r.spent) + e.spent as spent,
        if(record = {everybody}, 0, r.asked) + e.asked as asked,
        if(record = {everybody}, 0, r.drawn) + e.drawn as drawn,
        if(record = {everybody}, 0, r.drawing) + e.drawing as drawing
    from records r cross join everybody e
)
select
    max(spent), max(asked), max(spent + asked), max(drawn), max(drawn + drawing),
    count(*) filter (is_new),
    count(*) filter (spent + asked > $line),
    count(*) filter (drawn + drawing > $draw_line)
from totals
"""


@dataclass(frozen=True)
class Terms:
    """How a release is to be counted, and up to where."""

    dataset: str
    audience: str
    method: str
    is_shared: bool = True  # audiences share one total
    waived: tuple[str, ...] = ()  # methods whose missing bound counts for nothing
    line: float = math.inf  # ln gamma
    draw_line: float = math.inf
    told: Mapping[str, Any] = field(default_factory=dict)  # the same in the words of the policy

    @property
    def scope(self) -> dict[str, Any]:
        audience = None if self.is_shared else self.audience
        return {"dataset": self.dataset, "audience": audience, "waived": list(self.waived)}


def draws_table(run: Run) -> str:
    return f'sanitized."{run.table}_draws"'


class Sums(NamedTuple):
    """Largest of any record: before, by the new draws, and both; then counts of records."""

    spent: float
    asked: float
    total: float
    drawn: int  # draws without a bound
    drawing: int
    fresh: int  # records that are drawn anew
    over: int
    draws_over: int


def sums(db: duckdb.DuckDBPyConnection, terms: Terms, draws: str = NO_DRAWS) -> Sums:
    query = ACCOUNT.format(prior=PRIOR, draws=draws, everybody=EVERYBODY)
    lines = {"method": terms.method, "line": terms.line, "draw_line": terms.draw_line}
    (row,) = db.execute(query, {**terms.scope, **lines}).fetchall()
    return Sums(*row[:3], *map(int, row[3:]))


def weigh(db: duckdb.DuckDBPyConnection, run: Run, terms: Terms, released: int) -> Account | None:
    """The account with and without this run; None if its draws are not there or not whole."""
    records = drawn_records(db, run)
    if records is None or (records and records != released):
        return None
    found = sums(db, terms, draws_table(run))

    def people(count: int) -> int:
        return count if records or not count else released

    return Account(
        spent=found.spent,
        asked=found.asked,
        after=found.total,
        records=people(found.fresh),
        over=people(found.over),
        draws_spent=found.drawn,
        draws_after=found.drawing,
        draws_over=people(found.draws_over),
        unbounded=unbounded_methods(db, run, terms),
        has_ids=records > 0,
    )


def drawn_records(db: duckdb.DuckDBPyConnection, run: Run) -> int | None:
    """How many records the run's draws are of, 0 for a table without ids; None for a defect."""
    is_there = first(
        db,
        "select 1 from information_schema.tables where table_schema = 'sanitized' "
        "and table_name = ?",
        [f"{run.table}_draws"],
    )
    if not is_there:
        return None
    row = first(
        db,
        "select count(distinct record), count(*) filter (record = ?), count(*), "
        "count(*) filter (isnan(ln_gamma) or ln_gamma < 0), "
        f"count(distinct (draw_high, draw_low)) from {draws_table(run)}",
        [EVERYBODY],
    )
    assert row is not None
    records, everybody, lines, wrong, different = row
    if wrong or not lines or lines != different or (everybody and records > 1):
        return None
    return 0 if everybody else records


def unbounded_methods(db: duckdb.DuckDBPyConnection, run: Run, terms: Terms) -> tuple[str, ...]:
    rows = db.execute(
        "select distinct method from ledger.entry where dataset = $dataset and unbounded > 0 "
        "and ($audience is null or audience = $audience or kind = 'inherited') "
        "and not list_contains($waived, method) union "
        f"select distinct $method from {draws_table(run)} where isinf(ln_gamma) "
        "and not list_contains($waived, $method) order by 1",
        {**terms.scope, "method": terms.method},
    ).fetchall()
    return tuple(name for (name,) in rows)
