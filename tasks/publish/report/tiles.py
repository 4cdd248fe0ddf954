"""The five tiles of a report: the figures that matter most."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ppdm_core.model.policy import AMPLIFICATION, LEDGER_RECORD, Limit
from ppdm_core.model.release import Guarantee
from ppdm_core.numerics.amplification import MAX_USEFUL_GAMMA, is_useless_bound
from tasks.publish.report.scores import SEVERITY, Judgement, choose_worst, name_part
from tasks.publish.report.view import LedgerPlan, RiskLine, Tile, UtilityLine
from tasks.publish.report.words import choose_base, format_ln_gamma, format_share

# Title and goal of each tile of a risk; the second goal is used where no attack has the first.
RISK_TILES: tuple[tuple[tuple[str, str], ...], ...] = (
    (("Persons found", "link"), ("Rows traced to a person", "source")),
    (("Records recovered", "reconstruct"), ("Values inferred", "infer")),
    (("Members recognised", "member"),),
)


def build_risk_tiles(lines: Sequence[RiskLine], *, is_rounded: bool) -> list[Tile]:
    """Return the tiles of finding persons, recovering records and recognising members."""
    tiles = []
    for choices in RISK_TILES:
        for title, goal in choices:
            line = choose_worst(line for line in lines if line.goal == goal)
            if line is not None:
                tiles.append(build_risk_tile(title, line, is_rounded=is_rounded))
                break
        else:
            tiles.append(Tile(choices[0][0], "not measured", ("No attack applied.",), None))
    return tiles


def build_risk_tile(title: str, line: RiskLine, *, is_rounded: bool) -> Tile:
    """Return the tile of one risk."""
    base = choose_base(line.value, line.baseline, line.limit)
    least = "at most " if is_rounded else ""
    limit = "none" if line.limit is None else format_share(line.limit, base)
    part = name_part(line.name)
    notes = (
        *([f"of the {part}"] if part else []),
        f"without the release: {format_share(line.baseline, base)}",
        f"limit: {limit}",
    )
    value = format_share(line.value, base, is_rounded=is_rounded)
    return Tile(title, f"{least}{value}", notes, line.outcome)


def build_utility_tile(lines: Sequence[UtilityLine], *, is_rounded: bool) -> Tile:
    """Return the tile of what recipients keep: the first line, which is that of the summary."""
    if not lines:
        return Tile("Use for recipients", "not measured", ("No measure applied.",), None)
    line = min(lines, key=lambda line: (SEVERITY[line.outcome], lines.index(line)))
    line = lines[0] if SEVERITY[line.outcome] > SEVERITY["REVIEW"] else line
    least = "at least " if is_rounded else ""
    limit = "none" if line.limit is None else f"at least {format_share(line.limit)}"
    notes = (
        f"original table: {format_share(line.original, is_rounded=is_rounded)}",
        f"without the release: {format_share(line.baseline)}",
        f"limit: {limit}",
    )
    value = format_share(line.value, is_rounded=is_rounded)
    return Tile(line.title, f"{least}{value}", notes, line.outcome)


def build_bound_tile(
    guarantee: Guarantee | None,
    judgement: Judgement,
    ln_total: float | None,
    ledger: LedgerPlan | None,
) -> Tile:
    """Return the tile of the worst-case bound; ``ln_total`` is ln gamma of all releases so far."""
    title = "Worst-case bound"
    if guarantee is None:
        return Tile(title, "not known", (), None)
    name = find_bound(judgement)
    ln_gamma = guarantee.ln_record
    notes = []
    if math.isinf(ln_gamma):
        notes.append("no bound on what one row reveals")
    else:
        notes.append("factor by which one row can change the odds")
        if is_useless_bound(ln_gamma):
            notes.append(f"above {MAX_USEFUL_GAMMA:.0f}: no useful bound")
    limit = judgement.limits.get(name) if name else None
    notes.append(f"limit: {format_gamma_limit(limit)}")
    if ln_total is not None:
        total = format_ln_gamma(ln_total)
        notes.append(f"all releases so far: {total}{format_room(judgement, ledger)}")
    figure = "none" if math.isinf(ln_gamma) else format_ln_gamma(ln_gamma)
    return Tile(title, figure, tuple(notes), judgement.find_outcome(name))


def find_bound(judgement: Judgement) -> str:
    """Return the limit on amplification that decides; "" if none was judged."""
    judged = (*judgement.findings, *judgement.by_sites)
    names = [name for name in judged if name.startswith(AMPLIFICATION)]
    return min(names, key=lambda name: SEVERITY[judgement.find_outcome(name)], default="")


def format_gamma_limit(limit: Limit | None) -> str:
    """Return a limit on gamma in words."""
    if limit is None:
        return "none"
    return f"{limit.value:,.0f}" + (f", waived by {limit.set_by}" if limit.waive else "")


def format_room(judgement: Judgement, ledger: LedgerPlan | None) -> str:
    """Return the limit of the ledger and how many more releases fit."""
    limit = judgement.limits.get(LEDGER_RECORD)
    if limit is None:
        return ", no limit on their sum"
    room = ledger.room if ledger else None
    more = "" if room is None else f", room for {room:,} more"
    return f" of {limit.value:,.0f}{more}"
