"""`ppdm ledger`: show what all releases of a dataset add up to, and each entry."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Group

from ppdm.cli.console import NO_LIMIT, get_width, make_grid, make_text
from ppdm.cli.home import check_new_file, open_home
from ppdm.cli.replies.releases import LedgerReply
from ppdm.cli.result import CommandResult
from ppdm_core.model.errors import BadInput
from ppdm_core.model.policy import LEDGER_DRAWS, LEDGER_RECORD
from ppdm_core.numerics.amplification import format_gamma, format_gamma_value

if TYPE_CHECKING:
    import duckdb
    from rich.console import RenderableType
    from rich.table import Table

Entry = dict[str, Any]
BAR_WIDTH = 24
TITLES = ("release", "date", "method", "records", "asked", "so far", "entry", "")
MAX_LINES = 60
MIN_WIDTH_FOR_NAMES = 90  # of a terminal; below it, names of releases are wrapped


def show_ledger(dataset: str, plot: Path | None, home: Path | None) -> CommandResult:
    """Return the balances and entries of a dataset; draw them to ``plot`` if it is given."""
    from warehouse.ledger.entries import read_entries
    from warehouse.runs import list_datasets

    store = open_home(home)
    if plot is not None:
        check_plot(plot)
    with store.transaction(f"ledger of {dataset}") as db:
        known = list_datasets(db)
        found = [entry_as_dict(entry) for entry in read_entries(db, dataset)]
        accounts = [compute_account(db, entry) for entry in find_latest(found)]
    if dataset not in known:
        from ppdm_core.settings.errors import suggest_name

        raise BadInput(
            f"There is no dataset '{dataset}' here.", remedy=suggest_name(dataset, known)
        )
    reply = LedgerReply.model_validate({"dataset": dataset, "accounts": accounts, "entries": found})
    if plot is not None and found:
        from ppdm.cli.ledger_plot import draw_ledger
        from tasks.environment import set_library_defaults
        from warehouse.home import translate_disk_errors

        set_library_defaults(store.home.root)
        with translate_disk_errors(plot.parent):
            draw_ledger(dataset, found, plot)
    return CommandResult(Group(*render_ledger(dataset, accounts, found)), reply.as_payload())


def check_plot(plot: Path) -> None:
    """Raise BadInput if the file exists, or if its name is that of another kind of file."""
    check_new_file(plot)
    if plot.suffix not in (".svg", ".png"):
        raise BadInput(
            "The plot is written as SVG or PNG.",
            file=str(plot),
            remedy="Name a file that ends in .svg or .png.",
        )


def entry_as_dict(entry: Entry) -> Entry:
    """Return a ledger entry as plain JSON; a value without a bound is None."""
    figures = {name: finite_or_none(entry[name]) for name in ("spent", "asked", "total")}
    names = ("release_id", "audience", "kind", "method", "records", "draws")
    return {
        **{name: entry[name] for name in names},
        **{f"ln_{name}": value for name, value in figures.items()},
        "happened": entry["happened"].isoformat(),
        "terms": json.loads(entry["terms"]),
    }


def finite_or_none(value: float | None) -> float | None:
    """Return the value, or None if it is infinite."""
    return None if value is None or math.isinf(value) else value


def find_latest(found: Sequence[Entry]) -> list[Entry]:
    """Return the last judged entry, one of each audience that has an account of its own."""
    by_account = {
        entry["audience"] if entry["terms"]["collusion_waiver"] else None: entry for entry in found
    }
    return list(by_account.values())


def compute_account(db: duckdb.DuckDBPyConnection, entry: Entry) -> Entry:
    """Return what is spent and left, under the limits of the last judged release."""
    from warehouse.ledger.balance import LedgerScope, compute_totals

    terms, limits = entry["terms"], entry["terms"]["limits"]
    dataset = entry["release_id"].rpartition("-")[0]
    is_shared = not terms["collusion_waiver"]
    scope = LedgerScope(
        dataset, entry["audience"], "", is_shared=is_shared, waived=tuple(terms["waived"])
    )
    now = compute_totals(db, scope)
    limit, most = limits.get(LEDGER_RECORD), limits.get(LEDGER_DRAWS)
    ln_limit = math.inf if limit is None else math.log(limit)
    left = max(0.0, ln_limit - now.spent) if math.isfinite(now.spent) else 0.0
    return {
        "audience": None if is_shared else entry["audience"],
        "collusion_waiver": terms["collusion_waiver"],
        "waived": terms["waived"],
        "ln_spent": finite_or_none(now.spent),
        "ln_limit": finite_or_none(ln_limit),
        "ln_remaining": finite_or_none(left),
        "releases_remaining": count_releases_left(left, entry["ln_asked"]),
        "draws_spent": now.drawn,
        "draws_limit": most,
    }


def count_releases_left(left: float, asked: float | None) -> int | None:
    """Return how many releases like the last one fit; None if there is no bound."""
    from ppdm_core.gates.ledger import ROUNDING_MARGIN

    return math.floor((left + ROUNDING_MARGIN) / asked) if asked and math.isfinite(left) else None


def format_ln_gamma(ln_gamma: float | None) -> str:
    """Return gamma as text; None stands for no bound."""
    return format_gamma_value(math.inf if ln_gamma is None else ln_gamma)


def render_ledger(
    dataset: str, accounts: Sequence[Entry], found: Sequence[Entry]
) -> Iterator[RenderableType]:
    """Yield the balances and the table of the last entries."""
    if not found:
        yield make_text(f"{dataset}: no release was judged yet.")
        return
    title = f"{dataset}: sum of all releases for the most exposed record (gamma)"
    yield make_text(title, "bold")
    for each in accounts:
        yield make_grid(("", *line) for line in describe_account(each))
    yield ""
    yield render_entries(found[-MAX_LINES:])
    if len(found) > MAX_LINES:
        yield f"{len(found) - MAX_LINES} earlier entries: --json has them all"


def describe_account(each: Entry) -> Iterator[tuple[str, str]]:
    """Yield what is spent, the limit and what remains, each with its name."""
    if each["audience"] is not None:
        yield "audience", f"{each['audience']}, counted separately: {each['collusion_waiver']}"
    spent = math.inf if each["ln_spent"] is None else each["ln_spent"]
    waived = f", not counting {' and '.join(each['waived'])}" if each["waived"] else ""
    yield "spent", f"{format_gamma(spent)}{waived}"
    if each["ln_limit"] is None:
        yield "limit", f'none; set "{LEDGER_RECORD}" in [limits]'
    else:
        yield "limit", format_ln_gamma(each["ln_limit"])
        times = each["releases_remaining"]
        more = "" if times is None else f", room for {times:,} more draws like the latest one"
        yield "remaining", f"{format_ln_gamma(each['ln_remaining'])}{more}"
    if each["draws_spent"] or each["draws_limit"] is not None:
        limit = "no limit" if each["draws_limit"] is None else f"limit {each['draws_limit']:,.0f}"
        yield "draws", f"{each['draws_spent']:,} without a bound, {limit}"


def render_entries(found: Sequence[Entry]) -> Table:
    """Return one line for each entry, oldest first, with a bar of ln gamma so far.

    The bar is full at the limit, or without a limit at the largest value of all entries.
    """
    from rich.progress_bar import ProgressBar

    largest = max(filter(None, map(read_total, found)), default=1.0)
    rows = [
        (
            entry["release_id"],
            entry["happened"][:10],
            entry["method"],
            f"{entry['records']:,}",
            format_ln_gamma(entry["ln_asked"]),
            format_ln_gamma(after := read_total(entry)),
            entry["kind"],
            ProgressBar(
                full := read_ln_limit(entry) or largest, full if after is None else after, BAR_WIDTH
            ),
        )
        for entry in found
    ]
    is_narrow = get_width(NO_LIMIT) < MIN_WIDTH_FOR_NAMES
    return make_grid(rows, TITLES, right=(3, 4, 5), wrap=(0, 7) if is_narrow else (7,))


def read_total(entry: Entry) -> float | None:
    """Return ln gamma that was spent after this entry, or None without a bound."""
    value: float | None = entry["ln_spent" if entry["kind"] == "refused" else "ln_total"]
    return value


def read_ln_limit(entry: Entry) -> float | None:
    """Return ln of the limit on the record at the time of an entry, or None."""
    limit = entry["terms"].get("limits", {}).get(LEDGER_RECORD)
    return None if limit is None else math.log(limit)
