"""Records at several sites give the same fit, byte by byte, as in one table."""

from __future__ import annotations

import json
from functools import reduce

import numpy as np
import pytest

from ppdm_core.model.rows import ArrayRows
from ppdm_core.numerics.integer_moments import IntegerMoments, sum_moments
from ppdm_core.numerics.noise import Noise
from ppdm_core.sanitizers._basis import (
    Scores,
    complete_basis,
    find_basis,
    find_level_above,
    find_level_below,
    fit_basis,
    make_levels,
    sum_scores,
)
from ppdm_core.sanitizers._fuzzy_selection import EnergyBounds
from ppdm_core.sanitizers.dct_fuzzy import DctFuzzy
from tests.support.tables import fit_sanitizer, make_table, read_cells, scale_rows


def split_rows(rows: ArrayRows, sizes: list[int]) -> list[ArrayRows]:
    parts = np.split(rows.whole.X, np.cumsum(sizes))
    return [ArrayRows(rows.schema, part) for part in parts]


@pytest.mark.parametrize("components", [1, 3, {"variance": 0.9}])
@pytest.mark.parametrize("sizes", [[100, 250], [3, 17_000]])
def test_basis_of_three_sites_has_the_bytes_of_the_central_one(components, sizes):
    rows = make_table(sum(sizes) + 200)
    sites = split_rows(rows, sizes)
    total = reduce(IntegerMoments.merge, map(sum_moments, sites))
    draft = find_basis(total, rows.schema, components)
    scores = [sum_scores(site, draft.loadings, draft.mean) for site in sites]
    common = complete_basis(draft, reduce(Scores.merge, scores))
    assert json.dumps(common) == json.dumps(fit_basis(rows, components))


@pytest.mark.parametrize("reach", [0.5, 1.0, 3.7, 9.99, 1e-7, 1e6])
def test_levels_have_two_digits_and_enclose_every_score(reach):
    levels = make_levels(reach)
    assert (np.diff(levels) > 0).all()
    assert levels[-1] > reach and levels[0] < -reach
    assert all(float(f"{level:.1e}") == level for level in levels.tolist())
    for value in np.random.default_rng(0).uniform(-reach, reach, 200).tolist():
        above, below = find_level_above(levels, value), find_level_below(levels, value)
        assert below <= value <= above
        assert above - below <= max(0.1 * abs(value), 1e-3 * reach)


@pytest.mark.parametrize("selection", ["fuzzy", "random"])
def test_dct_of_three_sites_keeps_the_central_set(selection):
    rows = make_table(400)
    sanitizer = DctFuzzy(b=0.1, p=0.2, selection=selection)
    central = fit_sanitizer(sanitizer, rows)
    scaled = scale_rows(rows, central)
    sites = split_rows(ArrayRows(scaled.schema, read_cells(scaled)), [100, 50])
    found = [sanitizer.measure_bounds(site) for site in sites]
    pruned = sanitizer.choose_pruned(reduce(EnergyBounds.merge, found)).pruned
    kept = np.setdiff1d(np.arange(len(found[0].low)), pruned).tolist()
    assert kept == central["kept"]

    secret = Noise(b"\x05" * 32)
    fits = [sanitizer.share_fit(scaled.schema, kept, 0, secret) for _ in sites]
    released = [
        sanitizer.sanitize(site, Noise(bytes([number]) * 32), fit)
        for number, (site, fit) in enumerate(zip(sites, fits, strict=True))
    ]
    pool = np.concatenate([read_cells(each.rows) for each in released])
    assert len(fits[0]["order"]) == len(kept)
    # One process with the same order releases the same rows, whatever the keys of the sites are.
    whole = sanitizer.sanitize(scaled, Noise(b"\x09" * 32), fits[0])
    assert np.array_equal(pool, read_cells(whole.rows))
    assert "distance_distortion_mean" not in whole.public.facts


def test_dct_another_order_is_another_mechanism():
    rows = make_table(50)
    sanitizer = DctFuzzy(b=0.1, p=0.2)
    kept = [0, 1, 2, 3]
    one, two = (sanitizer.share_fit(rows.schema, kept, 0, Noise(bytes([k]) * 32)) for k in (1, 2))
    assert one["order"] != two["order"]
    prints = {sanitizer.fingerprint(rows.schema, fit) for fit in (one, two, {"kept": kept})}
    assert len(prints) == 3
