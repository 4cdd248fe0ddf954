"""The door's scan, tried on rows that must not leave."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ppdm_core.audit.self_test.broken_releases import CLEAR, IDENTITY, true_answers
from ppdm_core.audit.self_test.known_answers import derived, suited
from ppdm_core.audit.self_test.leaks import Plant, silenced
from ppdm_core.audit.self_test.must_catch import DOOR_SCAN, REPETITIONS
from ppdm_core.audit.self_test.policy_check import MOST_RECORDS
from ppdm_core.audit.simulation import Draw, Truth
from ppdm_core.model.arrays import Floats
from ppdm_core.model.self_test import NOISE, Coverage, Covered, Proof
from warehouse.publishing.leak_scan import Answered, Expected, categories, numbers

if TYPE_CHECKING:
    from tasks.audit.attack_worker import Job

VERBATIM = "verbatim rows"
FEWEST = 5  # rows as they are, or one in a hundred
GRID = 2.0**-12


def scan_proofs() -> tuple[Proof, ...]:
    """How often it stops a few records as they are, and how often noise alone."""
    rngs = [derived(DOOR_SCAN, number) for number in range(REPETITIONS)]
    plants = [suited(DOOR_SCAN, VERBATIM, rng) for rng in rngs]
    stopped = sum(stops_plant(plant) for plant in plants)
    alarms = sum(stops_plant(silenced(plant, rng)) for plant, rng in zip(plants, rngs, strict=True))
    return (
        Proof(DOOR_SCAN, VERBATIM, stopped, REPETITIONS),
        Proof(DOOR_SCAN, NOISE, alarms, REPETITIONS),
    )


def stops_plant(plant: Plant) -> bool:
    """Noise leaves on a grid, on which no record lies."""
    is_own = (plant.Y == plant.X).all(axis=1, keepdims=True)
    Y = np.where(is_own, plant.Y, np.rint(plant.Y / GRID) * GRID)
    scales = plant.public.scales
    assert scales is not None
    return stops(Y, plant.X, atom=float(GRID / (2 * scales[0])), draws=Y.shape[1], same=True)


def refused_at_the_door(coverage: Coverage, job: Job, facts: Mapping[str, Any]) -> Coverage:
    """Adds what the scan stops: words or columns as they are, a few records among the rows."""
    truth, draw = job.read("truth"), job.read("shadow_0")
    rng = np.random.default_rng(len(truth.X))
    has_numbers = draw.Y.shape[1] > 0
    found = {each.plant: each.refused_by for each in coverage.bad}
    if has_numbers and facts["same_columns"]:
        found[VERBATIM] = ()
    stopped = {
        CLEAR: lambda: stops_clear(truth, draw, facts, rng),
        VERBATIM: lambda: stops_verbatim(truth, draw, facts, rng),
        **({} if has_numbers else {IDENTITY: lambda: stops_words(truth, draw, rng)}),
    }
    for plant, is_stopped in stopped.items():
        if plant in found and is_stopped():
            found[plant] += (DOOR_SCAN,)
    return replace(coverage, bad=tuple(Covered(plant, names) for plant, names in found.items()))


def stops_words(truth: Truth, draw: Draw, rng: np.random.Generator) -> bool:
    """All true ones are more than the law of the answers makes."""
    import pyarrow as pa

    rows = rng.permutation(len(truth.X))[:MOST_RECORDS]
    codes = true_answers(truth, draw.public)[rows]
    answered, columns = [], {}
    for response, column in zip(draw.public.responses, codes.T, strict=True):
        words = [*response.column.categories, None]  # -1 is none
        cells = [words[code] for code in column.tolist()]
        columns[response.column.name] = pa.array(cells, pa.string())
        answered.append(Answered(response, column))
    return any(categories(pa.table(columns), tuple(answered)))


def stops_clear(
    truth: Truth, draw: Draw, facts: Mapping[str, Any], rng: np.random.Generator
) -> bool:
    X = sampled(truth, draw, rng)[1]
    columns = rng.permutation(X.shape[1])[: draw.Y.shape[1]]
    return stops(X[:, columns], X, facts["atom"], draws_of(draw), same=False)


def stops_verbatim(
    truth: Truth, draw: Draw, facts: Mapping[str, Any], rng: np.random.Generator
) -> bool:
    Y, X = sampled(truth, draw, rng)
    few = rng.permutation(len(Y))[: max(FEWEST, len(Y) // 100)]
    Y[few] = X[few]
    return stops(Y, X, facts["atom"], draws_of(draw), same=True)


def sampled(truth: Truth, draw: Draw, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Some rows of a shadow draw, and the records behind them."""
    rows = rng.permutation(len(draw.Y))[:MOST_RECORDS]
    return draw.Y[rows], truth.X[draw.records[rows]]


def draws_of(draw: Draw) -> int:
    scales = draw.public.scales
    return draw.Y.shape[1] if scales is None else len(scales)


def stops(Y: Floats, X: Floats, atom: float, draws: int, *, same: bool) -> bool:
    import pyarrow as pa

    names = tuple(f"c{j}" for j in range(Y.shape[1]))
    expected = Expected(
        columns=names,
        label=None,
        categories=(),
        rows=len(Y),
        atom=atom,
        draws=draws,
        grid=None,
        forbidden=frozenset(),
        originals=(X,),
        others=(),
        same_columns=same,
        source_order=np.zeros(len(Y)),
    )
    return any(numbers(pa.table(dict(zip(names, Y.T, strict=True))), expected))
