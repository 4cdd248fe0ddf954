"""Draws the picture of ledger.md: a year of weekly releases, with keyed noise and with fresh.

    python -m studies.draw_year      # from the root of the project, with wine.csv in PPDM_DATA

Every week a twentieth of the wines changes, each in one column. A subscriber keeps all releases,
averages them, and looks for wines whose full record is known. The file also carries its figures.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ppdm_core.audit.draws import EarlierReleases, OriginalTable, ReleaseDraw
from ppdm_core.audit.runner import Auditor
from ppdm_core.model.arrays import Floats
from ppdm_core.model.attacker import EarlierRows
from ppdm_core.model.policy import Attacker, Policy
from ppdm_core.model.rows import ArrayRows
from ppdm_core.numerics.scaling import fit_scaling
from ppdm_core.sanitizers import Sanitizer, make_sanitizer
from studies.draw_risk import DARK, GREY, Point, draw_attack, draw_labels
from studies.risk import data_folder, draw, in_memory, load

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PATH = Path(__file__).resolve().parents[1] / "docs" / "pictures" / "year.png"
METHOD, PARAMETERS = "additive_noise", {"b": 0.5}
CHANGING = 0.05  # of the records, every week
WEEKS = (1, 2, 4, 8, 13, 20, 26, 39, 52)
LOOKS = {"fresh": ("#D55E00", "o"), "keyed": ("#0072B2", "s")}
WORDS = {"fresh": "fresh noise every week", "keyed": "noise from a key"}
POLICY = Policy(
    required=("release_averaging", "record_linkage"),
    limits={},
    attacker=Attacker(known_records=0),
    effort="quick",
)


def tables(folder: Path) -> Iterator[ArrayRows]:
    """The wines week by week; who changes gets one value of another wine."""
    rng = np.random.default_rng(52)
    rows = load(folder, "wine", frozenset({"numeric"}))
    rows = in_memory(fit_scaling(rows, "range").apply(rows))
    X, whole = rows.whole.X.copy(), rows.whole
    while True:
        yield ArrayRows(rows.schema, X.copy(), whole.label, whole.key)
        some = rng.permutation(len(X))[: round(CHANGING * len(X))]
        column = rng.integers(0, X.shape[1], len(some))
        X[some, column] = X[rng.permutation(len(X))[: len(some)], column]


def key_of(kind: str, week: int) -> bytes:
    return bytes([7, week if kind == "fresh" else 0]) * 16


def linked(kind: str, year: Sequence[ArrayRows], sanitizer: Sanitizer) -> Point:
    """What a subscriber finds after the last of these weeks."""
    fitted: dict[str, Any] = {}
    published = [
        draw(sanitizer, rows, fitted, key_of(kind, week)) for week, rows in enumerate(year)
    ]
    now, shadows = year[-1], [draw(sanitizer, year[-1], fitted, bytes([k]) * 32) for k in (1, 2)]
    truth = OriginalTable(now.whole.X, now.whole.label, now.schema)
    draws = [replace(one, source=None) for one in shadows]
    auditor = Auditor(truth, draws, POLICY, b"year", past=kept(published))
    scores = {score.name: score for score in auditor.run("record_linkage")}
    rate = scores["record_linkage.rate"]
    return rate.value, rate.low, rate.high, rate.baseline


def kept(published: Sequence[ReleaseDraw]) -> EarlierReleases:
    """All releases but the last, and those rows of the last that were there before."""
    rows, Y = np.arange(len(published[-1].Y)), published[-1].Y
    unchanged_rows: Floats = np.full_like(Y, np.nan)
    since = np.full(len(Y), len(published))
    for week, one in reversed(list(enumerate(published[:-1]))):
        same = (one.Y == Y).all(axis=1)
        unchanged_rows[same], since[same] = Y[same], week
    versions = tuple(EarlierRows(rows, one.Y, one.public) for one in published[:-1])
    return EarlierReleases(versions, unchanged_rows, since)


def figures(folder: Path, weeks: Sequence[int] = WEEKS) -> dict[str, list[Point]]:
    sanitizer, source = make_sanitizer(METHOD, PARAMETERS), tables(folder)
    year = [next(source) for _ in range(max(weeks))]
    return {kind: [linked(kind, year[:week], sanitizer) for week in weeks] for kind in LOOKS}


def picture(found: Mapping[str, Sequence[Point]]) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 3.3), layout="constrained")
    axes = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(GREY)
    axes.tick_params(colors=DARK, labelsize=8)
    axes.set(ylim=(-0.02, 1.02), xlabel="weekly releases", ylabel="people found")
    axes.set_xticks([1, 13, 26, 39, 52])
    for kind, points in found.items():
        draw_attack(axes, WEEKS, points, *LOOKS[kind])
    draw_labels(axes, {WORDS[kind]: (found[kind][-1][0], LOOKS[kind][0]) for kind in found})
    return figure


def main() -> None:
    found = figures(data_folder())
    text = {"Software": None, "Figures": json.dumps(found)}
    picture(found).savefig(PATH, dpi=110, metadata=text)
    for kind, points in found.items():
        print(kind, [f"{week}: {point[0]:.0%}" for week, point in zip(WEEKS, points, strict=True)])


if __name__ == "__main__":
    main()
