"""Draw the picture of ledger.md: a year of weekly releases with keyed and with fresh noise.

    python -m studies.draw_weekly_releases      # from the root of the project

The table is wine.csv in the folder PPDM_DATA.

Every week a twentieth of the records changes in one column. A subscriber stores all releases,
averages them, and searches for wines whose full record is known. The picture stores its figures as
text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ppdm_core.audit.auditor import Auditor
from ppdm_core.audit.draws import EarlierReleases, OriginalTable, ReleaseDraw, collect_draw
from ppdm_core.model.arrays import Floats
from ppdm_core.model.attacker import EarlierRows
from ppdm_core.model.policy import Attacker, Policy
from ppdm_core.model.rows import ArrayRows
from ppdm_core.numerics.noise import Noise
from ppdm_core.numerics.scaling import fit_scaling
from ppdm_core.sanitizers import Sanitizer, make_sanitizer
from studies.attack_sweeps import Point
from studies.draw_attack_sweeps import DARK, GREY, draw_attack, draw_labels
from studies.public_table_audit import load_table
from studies.public_tables import get_data_folder, load_into_memory

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PICTURE_PATH = Path(__file__).resolve().parents[1] / "docs" / "pictures" / "year.png"
METHOD, PARAMETERS = "additive_noise", {"b": 0.5}
WEEKLY_CHANGED_SHARE = 0.05  # of the records
WEEKS = (1, 2, 4, 8, 13, 20, 26, 39, 52)
STYLES = {"fresh": ("#D55E00", "o"), "keyed": ("#0072B2", "s")}
LABELS = {"fresh": "fresh noise every week", "keyed": "noise from a key"}
POLICY = Policy(
    required=("release_averaging", "record_linkage"),
    limits={},
    attacker=Attacker(known_records=0),
    effort="quick",
)


def draw_weekly_tables(folder: Path) -> Iterator[ArrayRows]:
    """Yield the table of each week; a changed record gets one value of another record."""
    rng = np.random.default_rng(52)
    rows = load_table(folder, "wine", frozenset({"numeric"}))
    rows = load_into_memory(fit_scaling(rows, "range").apply(rows))
    X, whole = rows.whole.X.copy(), rows.whole
    while True:
        yield ArrayRows(rows.schema, X.copy(), whole.label, whole.key)
        some = rng.permutation(len(X))[: round(WEEKLY_CHANGED_SHARE * len(X))]
        column = rng.integers(0, X.shape[1], len(some))
        X[some, column] = X[rng.permutation(len(X))[: len(some)], column]


def make_key(kind: str, week: int) -> bytes:
    """Return the noise key of a week: always the same one, or a fresh one."""
    return bytes([7, week if kind == "fresh" else 0]) * 16


def draw_release(
    sanitizer: Sanitizer, rows: ArrayRows, fitted: dict[str, Any], key: bytes
) -> ReleaseDraw:
    """Return one release of the records under a key."""
    released = sanitizer.sanitize(rows, Noise(key), fitted)
    return collect_draw(released, rows.whole.record)


def measure_linkage(kind: str, weeks_so_far: Sequence[ArrayRows], sanitizer: Sanitizer) -> Point:
    """Return the share of records that a subscriber finds after the last of these weeks."""
    fitted: dict[str, Any] = {}
    published = [
        draw_release(sanitizer, rows, fitted, make_key(kind, week))
        for week, rows in enumerate(weeks_so_far)
    ]
    now, shadows = (
        weeks_so_far[-1],
        [draw_release(sanitizer, weeks_so_far[-1], fitted, bytes([k]) * 32) for k in (1, 2)],
    )
    original = OriginalTable(now.whole.X, now.whole.label, now.schema)
    draws = [replace(one, source=None) for one in shadows]
    auditor = Auditor(original, draws, POLICY, b"year", earlier=collect_earlier(published))
    scores = {score.name: score for score in auditor.run("record_linkage")}
    rate = scores["record_linkage.rate"]
    return rate.value, rate.low, rate.high, rate.baseline


def collect_earlier(published: Sequence[ReleaseDraw]) -> EarlierReleases:
    """Return all releases except the last, and the rows of the last that were published before."""
    rows, Y = np.arange(len(published[-1].Y)), published[-1].Y
    unchanged_rows: Floats = np.full_like(Y, np.nan)
    since = np.full(len(Y), len(published))
    for week, one in reversed(list(enumerate(published[:-1]))):
        same = (one.Y == Y).all(axis=1)
        unchanged_rows[same], since[same] = Y[same], week
    versions = tuple(EarlierRows(rows, one.Y, one.public) for one in published[:-1])
    return EarlierReleases(versions, unchanged_rows, since)


def measure_weeks(folder: Path, weeks: Sequence[int] = WEEKS) -> dict[str, list[Point]]:
    """Return the points of both kinds of noise after each of ``weeks``."""
    sanitizer, source = make_sanitizer(METHOD, PARAMETERS), draw_weekly_tables(folder)
    weeks_so_far = [next(source) for _ in range(max(weeks))]
    return {
        kind: [measure_linkage(kind, weeks_so_far[:week], sanitizer) for week in weeks]
        for kind in STYLES
    }


def draw_figure(found: Mapping[str, Sequence[Point]]) -> Figure:
    """Return the figure of both kinds of noise."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 3.3), layout="constrained")
    axes = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(GREY)
    axes.tick_params(colors=DARK, labelsize=8)
    axes.set(ylim=(-0.02, 1.02), xlabel="weekly releases", ylabel="records found")
    axes.set_xticks([1, 13, 26, 39, 52])
    for kind, points in found.items():
        draw_attack(axes, WEEKS, points, *STYLES[kind])
    draw_labels(axes, {LABELS[kind]: (found[kind][-1][0], STYLES[kind][0]) for kind in found})
    return figure


def main() -> None:
    found = measure_weeks(get_data_folder())
    text = {"Software": None, "Figures": json.dumps(found)}
    draw_figure(found).savefig(PICTURE_PATH, dpi=110, metadata=text)
    for kind, points in found.items():
        print(kind, [f"{week}: {point[0]:.0%}" for week, point in zip(WEEKS, points, strict=True)])


if __name__ == "__main__":
    main()
