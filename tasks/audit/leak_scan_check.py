"""Test the leak scan of publishing on rows that must not be published."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ppdm_core.audit.draws import OriginalTable, ReleaseDraw
from ppdm_core.audit.self_test.broken_releases import CLEAR_COLUMNS, IDENTITY, select_true_codes
from ppdm_core.audit.self_test.known_answers import make_rng, plant_leak_for
from ppdm_core.audit.self_test.leaks import PlantedLeak, replace_by_noise
from ppdm_core.audit.self_test.matrix import LEAK_SCAN, REPETITIONS
from ppdm_core.audit.self_test.policy_check import MAX_RECORDS, check_policy
from ppdm_core.model.arrays import Floats
from ppdm_core.model.self_test import NOISE, LeakTest, PolicyCheck, ReleaseTest
from warehouse.publishing.expected_content import (
    ArrayOriginals,
    ExpectedContent,
    OriginalRows,
    hold_numbers,
)
from warehouse.publishing.leak_scan import find_content_leaks

if TYPE_CHECKING:
    from ppdm_core.audit.auditor import Auditor

VERBATIM = "verbatim rows"
MIN_VERBATIM_ROWS = 5  # rows as they are, or one in a hundred
GRID = 2.0**-12


def check_leak_scan() -> tuple[LeakTest, ...]:
    """Return how often the scan stops a few verbatim records, and how often noise alone."""
    rngs = [make_rng(LEAK_SCAN, number) for number in range(REPETITIONS)]
    leaks = [plant_leak_for(LEAK_SCAN, VERBATIM, rng) for rng in rngs]
    stopped = sum(stops_leak(leak) for leak in leaks)
    quiet = [replace_by_noise(leak, rng) for leak, rng in zip(leaks, rngs, strict=True)]
    alarms = sum(stops_leak(leak) for leak in quiet)
    return (
        LeakTest(LEAK_SCAN, VERBATIM, stopped, REPETITIONS),
        LeakTest(LEAK_SCAN, NOISE, alarms, REPETITIONS),
    )


def stops_leak(plant: PlantedLeak) -> bool:
    """Return whether the scan stops a release; noise is on a grid, on which no record lies."""
    is_own = (plant.Y == plant.X).all(axis=1, keepdims=True)
    Y = np.where(is_own, plant.Y, np.rint(plant.Y / GRID) * GRID)
    scales = plant.public.scales
    assert scales is not None
    return stops(Y, plant.X, atom=float(GRID / (2 * scales[0])), draws=Y.shape[1], same=True)


@dataclass(frozen=True)
class ReleasePolicyQuestion:
    """The question to the attack process, which holds the table."""

    atom: float  # largest probability of any single value in one released cell
    same_columns: bool  # released columns are the original ones

    def answer(self, auditor: Auditor) -> PolicyCheck:
        """Return which bad releases the policy refuses, or the scan before publishing stops."""
        return add_leak_scan(check_policy(auditor), auditor.truth, auditor.draws[0], self)


def add_leak_scan(
    check: PolicyCheck, truth: OriginalTable, draw: ReleaseDraw, facts: ReleasePolicyQuestion
) -> PolicyCheck:
    """Add the bad releases that the scan stops: true categories or columns, verbatim records."""
    rng = np.random.default_rng(len(truth.X))
    has_numbers = draw.Y.shape[1] > 0
    found = {each.name: each for each in check.bad}
    if has_numbers and facts.same_columns:
        found[VERBATIM] = ReleaseTest(VERBATIM, ())
    stopped = {
        CLEAR_COLUMNS: lambda: stops_clear(truth, draw, facts, rng),
        VERBATIM: lambda: stops_verbatim(truth, draw, facts, rng),
        **({} if has_numbers else {IDENTITY: lambda: stops_words(truth, draw, rng)}),
    }
    for name, is_stopped in stopped.items():
        if name in found and is_stopped():
            found[name] = ReleaseTest(name, (*found[name].refused_by, LEAK_SCAN))
    return replace(check, bad=tuple(found.values()))


def stops_words(truth: OriginalTable, draw: ReleaseDraw, rng: np.random.Generator) -> bool:
    """Return whether the scan stops true categories, which randomized responses rarely make."""
    import pyarrow as pa

    rows = rng.permutation(len(truth.X))[:MAX_RECORDS]
    codes = select_true_codes(truth, draw.public)[rows]
    columns = {}
    for response, column in zip(draw.public.responses, codes.T, strict=True):
        words = [*response.column.categories, None]  # -1 is none
        cells = [words[code] for code in column.tolist()]
        columns[response.column.name] = pa.array(cells, pa.string())
    records = ArrayOriginals(OriginalRows((), codes, np.zeros(len(codes))))
    expected = replace(expect_rows(0, records), responses=tuple(draw.public.responses))
    return any(find_content_leaks(lambda: [pa.table(columns)], expected))


def stops_clear(
    truth: OriginalTable, draw: ReleaseDraw, facts: ReleasePolicyQuestion, rng: np.random.Generator
) -> bool:
    """Return whether the scan stops original columns in place of the released ones."""
    X = sample_rows(truth, draw, rng)[1]
    columns = rng.permutation(X.shape[1])[: draw.Y.shape[1]]
    return stops(X[:, columns], X, facts.atom, count_components(draw), same=False)


def stops_verbatim(
    truth: OriginalTable, draw: ReleaseDraw, facts: ReleasePolicyQuestion, rng: np.random.Generator
) -> bool:
    """Return whether the scan stops a few verbatim records among the rows of a shadow draw."""
    Y, X = sample_rows(truth, draw, rng)
    few = rng.permutation(len(Y))[: max(MIN_VERBATIM_ROWS, len(Y) // 100)]
    Y[few] = X[few]
    return stops(Y, X, facts.atom, count_components(draw), same=True)


def sample_rows(
    truth: OriginalTable, draw: ReleaseDraw, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Return some rows of a shadow draw, and the records behind them."""
    rows = rng.permutation(len(draw.Y))[:MAX_RECORDS]
    return draw.Y[rows], truth.X[draw.records[rows]]


def count_components(draw: ReleaseDraw) -> int:
    """Return how many independent components are behind a row."""
    scales = draw.public.scales
    return draw.Y.shape[1] if scales is None else len(scales)


def stops(Y: Floats, X: Floats, atom: float, draws: int, *, same: bool) -> bool:
    """Return whether the scan stops the rows Y of the records X."""
    import pyarrow as pa

    expected = replace(
        expect_rows(Y.shape[1], hold_numbers(X)),
        atom=atom,
        draws=draws,
        same_columns=same,
    )
    table = pa.table(dict(zip(expected.columns, Y.T, strict=True)))
    return any(find_content_leaks(lambda: [table], expected))


def expect_rows(columns: int, originals: ArrayOriginals) -> ExpectedContent:
    """Return what the scan compares rows with, without a label and without a grid."""
    return ExpectedContent(
        columns=tuple(f"c{j}" for j in range(columns)),
        label=None,
        categories=(),
        rows=originals.rows.n,
        atom=1.0,
        draws=columns,
        grid=None,
        forbidden=frozenset(),
        originals=originals,
        same_columns=False,
    )
