"""`ppdm ledger`: what all releases of a dataset add up to, and how it came to that."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ppdm.cli.release import open_home
from ppdm.cli.result import Answer
from ppdm_core.model.errors import BadInput
from ppdm_core.model.policy import LEDGER_DRAWS, LEDGER_RECORD
from ppdm_core.numerics.amplification import figure, in_words

if TYPE_CHECKING:
    import duckdb

Entry = dict[str, Any]
BAR = 24  # characters
MOST_LINES = 60


def show_ledger(dataset: str, plot: Path | None, home: Path | None) -> Answer:
    from warehouse.ledger.entries import entries

    store = open_home(home)
    if plot is not None and plot.exists():
        raise BadInput(
            f"{plot.name} exists already.", file=str(plot), remedy="Name a file that does not."
        )
    with store.transaction(f"ledger of {dataset}") as db:
        known = [name for (name,) in db.execute("select name from meta.dataset").fetchall()]
        found = [told(entry) for entry in entries(db, dataset)]
        accounts = [account(db, entry) for entry in latest(found)]
    if dataset not in known:
        from flows.config.errors import nearest

        raise BadInput(f"There is no dataset '{dataset}' here.", remedy=nearest(dataset, known))
    payload = {"dataset": dataset, "accounts": accounts, "entries": found}
    if plot is not None and found:
        from ppdm.cli.ledger_plot import picture
        from warehouse.home import machine_errors

        with machine_errors(plot.parent):
            plot.write_text(picture(dataset, found))
    return Answer("\n".join(in_lines(dataset, accounts, found)), payload)


def told(entry: Entry) -> Entry:
    """As plain JSON: a figure without a bound is None."""
    figures = {name: finite(entry[name]) for name in ("spent", "asked", "total")}
    names = ("release_id", "audience", "kind", "method", "records", "draws")
    return {
        **{name: entry[name] for name in names},
        **{f"ln_{name}": value for name, value in figures.items()},
        "happened": entry["happened"].isoformat(),
        "terms": json.loads(entry["terms"]),
    }


def finite(value: float | None) -> float | None:
    return None if value is None or math.isinf(value) else value


def latest(found: Sequence[Entry]) -> list[Entry]:
    """The last judged release, of each audience where they are counted apart."""
    judged = [entry for entry in found if entry["kind"] != "inherited"]
    by_account = {
        entry["audience"] if entry["terms"]["collusion_waiver"] else None: entry for entry in judged
    }
    return list(by_account.values())


def account(db: duckdb.DuckDBPyConnection, entry: Entry) -> Entry:
    """What is spent now, under the limits of the last release that was judged."""
    from warehouse.ledger.balance import Terms, sums

    terms, limits = entry["terms"], entry["terms"]["limits"]
    dataset = entry["release_id"].rpartition("-")[0]
    is_shared = not terms["collusion_waiver"]
    scope = Terms(
        dataset, entry["audience"], "", is_shared=is_shared, waived=tuple(terms["waived"])
    )
    now = sums(db, scope)
    limit, most = limits.get(LEDGER_RECORD), limits.get(LEDGER_DRAWS)
    line = math.inf if limit is None else math.log(limit)
    left = max(0.0, line - now.spent) if math.isfinite(now.spent) else 0.0
    return {
        "audience": None if is_shared else entry["audience"],
        "collusion_waiver": terms["collusion_waiver"],
        "waived": terms["waived"],
        "ln_spent": finite(now.spent),
        "ln_limit": finite(line),
        "ln_remaining": finite(left),
        "releases_remaining": releases_left(left, entry["ln_asked"]),
        "draws_spent": now.drawn,
        "draws_limit": most,
    }


def releases_left(left: float, asked: float | None) -> int | None:
    from ppdm_core.gates.ledger import ROUNDING

    return math.floor((left + ROUNDING) / asked) if asked and math.isfinite(left) else None


def gamma(ln_gamma: float | None) -> str:
    return figure(math.inf if ln_gamma is None else ln_gamma)


def in_lines(dataset: str, accounts: Sequence[Entry], found: Sequence[Entry]) -> Iterator[str]:
    if not found:
        yield f"{dataset}: no release was judged yet."
        return
    yield f"{dataset}: what all releases add up to, for the record that is worst off (gamma)"
    for each in accounts:
        yield from account_lines(each)
    yield ""
    yield from table(found[-MOST_LINES:])
    if len(found) > MOST_LINES:
        yield f"{len(found) - MOST_LINES} earlier entries: --json has them all"


def account_lines(each: Entry) -> Iterator[str]:
    if each["audience"] is not None:
        yield f"  audience   {each['audience']}, counted apart: {each['collusion_waiver']}"
    spent = math.inf if each["ln_spent"] is None else each["ln_spent"]
    waived = f", not counting {' and '.join(each['waived'])}" if each["waived"] else ""
    yield f"  spent      {in_words(spent)}{waived}"
    if each["ln_limit"] is None:
        yield f'  limit      none; set "{LEDGER_RECORD}" in [limits]'
    else:
        yield f"  limit      {gamma(each['ln_limit'])}"
        times = each["releases_remaining"]
        more = "" if times is None else f", room for {times:,} more draws like the latest of it"
        yield f"  remaining  {gamma(each['ln_remaining'])}{more}"
    if each["draws_spent"] or each["draws_limit"] is not None:
        limit = "no limit" if each["draws_limit"] is None else f"limit {each['draws_limit']:,.0f}"
        yield f"  draws      {each['draws_spent']:,} without a bound, {limit}"


KINDS = {
    "charged": "",
    "refused": "  refused, nobody charged",
    "inherited": "  before the ledger",
}


def table(found: Sequence[Entry]) -> Iterator[str]:
    """Time runs down; a bar is ln gamma so far, and the stroke its limit."""
    most = scale_of(found)
    names = max(len(entry["release_id"]) for entry in found)
    methods = max(len(entry["method"]) for entry in found)
    widths = f"{'release':<{names}}  {'date':<10}  {'method':<{methods}}"
    yield f"{widths}  {'records':>9}  {'asked':>9}  {'so far':>9}"
    for entry in found:
        after = so_far(entry)
        records = "all" if entry["kind"] == "inherited" else f"{entry['records']:,}"
        yield (
            f"{entry['release_id']:<{names}}  {entry['happened'][:10]}  "
            f"{entry['method']:<{methods}}  {records:>9}  {gamma(entry['ln_asked']):>9}  "
            f"{gamma(after):>9}  {bar(after, limit_of(entry), most)}{KINDS[entry['kind']]}"
        ).rstrip()


def so_far(entry: Entry) -> float | None:
    """What was spent once this entry was made."""
    value: float | None = entry["ln_spent" if entry["kind"] == "refused" else "ln_total"]
    return value


def limit_of(entry: Entry) -> float | None:
    limit = entry["terms"].get("limits", {}).get(LEDGER_RECORD)
    return None if limit is None else math.log(limit)


def scale_of(found: Sequence[Entry]) -> float:
    figures = [value for entry in found for value in (so_far(entry), limit_of(entry))]
    return max((value for value in figures if value), default=1.0)


def bar(after: float | None, limit: float | None, most: float) -> str:
    filled = BAR if after is None else round(BAR * after / most)
    cells = ["#"] * filled + [" "] * (BAR - filled + 1)
    if limit is not None:
        cells[round(BAR * limit / most)] = "|"
    return "".join(cells)
