"""`ppdm check`: check a release file and its data without writing anything."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ppdm.cli.console import format_lines
from ppdm.cli.home import check_new_file
from ppdm.cli.release_files import read_release_file
from ppdm.cli.replies.checks import CheckReply
from ppdm.cli.result import CommandResult
from ppdm.services.prefect_server import stop_orphaned_server
from ppdm_core.model.shown_text import show_line

if TYPE_CHECKING:
    from ppdm.forecast.release import Forecast
    from tasks.context import ReleaseContext


def check_release_file(path: Path, suite: Path | None = None) -> CommandResult:
    """Check a release file and its source; return counts, and what its release will do.

    If they are fine, write the checks to ``suite``, for Great Expectations.
    """
    from ppdm.cli.check_forecast import (
        build_charge,
        build_cost,
        build_policy,
        list_forecast_lines,
    )
    from ppdm.forecast.release import foretell_release

    if suite is not None:
        check_new_file(suite)
    _, context = read_release_file(path)
    stop_orphaned_server(Path(context.home))
    forecast = foretell_release(context)
    lines = [f"  {line}" for line in list_forecast_lines(context, forecast)]
    head = format_check(path, context, forecast.facts)
    text = "\n".join([head, *list_refusals(forecast), format_lines(lines)])
    facts = {
        "file": str(path),
        **forecast.facts,
        "ledger": build_charge(forecast.charge, context),
        "policy_check": build_policy(forecast.policy),
        "estimate": build_cost(forecast.cost),
    }
    if suite is not None:
        count = write_suite(suite, context)
        text += "\n" + show_line(f"The suite of {count} expectations is in {suite}.")
        facts["expectations"] = str(suite)
    return CommandResult(text, CheckReply(**facts).as_payload())


def list_refusals(forecast: Forecast) -> list[str]:
    """Return the sentence that a release will be refused, if that is known already."""
    refusing = [
        *(["the ledger"] if forecast.charge.is_refused else []),
        *(["the self-test, because of the policy"] if forecast.policy.gaps else []),
    ]
    if not refusing:
        return []
    return [f"  A RELEASE WILL BE REFUSED by {' and by '.join(refusing)}: see below."]


def write_suite(out: Path, context: ReleaseContext) -> int:
    """Write the checks as expectations of the table's own columns; return their number."""
    from tasks.ingest.expectations import format_suite
    from tasks.ingest.table_suite import list_table_expectations
    from warehouse.home import translate_disk_errors

    entries = list_table_expectations(context.columns, context.record_id, context.expectations)
    text = format_suite(context.dataset, entries)
    with translate_disk_errors(out.parent), out.open("x", encoding="utf-8") as file:
        file.write(text)
    return len(entries)


def format_check(path: Path, context: ReleaseContext, facts: Mapping[str, Any]) -> str:
    """Return what `ppdm check` found: counts, limits, columns, weaker promises, the label."""
    lines = [
        f"{path.name} and {context.source.name} are fine: {facts['rows']:,} records, "
        f"{facts['checks']} checks, method {context.method}."
    ]
    for name, smallest in facts["smallest_limits"].items():
        limit = context.policy.limits[name]
        too_small = (
            " Its limit is smaller: no release can keep it." if limit.value < smallest else ""
        )
        lines.append(
            f"  {name}: so few records certify {100 * smallest:.2g} % at best, "
            f"even if the attack gets nothing.{too_small}"
        )
    for name, share in facts["frequently_changed_columns"].items():
        lines.append(
            f"  Column '{name}' changed in {100 * share:.0f} % of the records since the last run: "
            "if it changes every time, every record gets new noise and is charged in every "
            "release, and the noise averages out. Exclude it, or release a coarser one."
        )
    lines += [f"  Weaker promise: {sentence}" for sentence in facts["weaker_promises"]]
    lines += [f"  {warning}" for warning in facts["label_warnings"]]
    if facts["repeated_rows"]:
        lines.append(
            f"  {facts['repeated_rows']:,} rows repeat an earlier row: they are equal in all "
            "features and the label. If they are the same persons under other ids, remove the "
            "copies: limits and ledger count each row as another person."
        )
    return format_lines(lines)
