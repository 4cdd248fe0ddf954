"""The centre's side of the agreement on a common fit; it sees bounds, or sums over all sites."""

from __future__ import annotations

from functools import reduce
from typing import Any, cast

import numpy as np

from ppdm_core.model.arrays import Floats
from ppdm_core.model.errors import BadInput
from ppdm_core.model.schema import Numeric, Schema
from ppdm_core.numerics.integer_moments import IntegerMoments, check_plausible
from ppdm_core.numerics.masks import sum_masked, unpack_values
from ppdm_core.numerics.scaling import Scaling, check_widths
from ppdm_core.sanitizers import Sanitizer
from ppdm_core.sanitizers._basis import (
    BasisDraft,
    Scores,
    complete_basis,
    find_basis,
    list_levels,
)
from ppdm_core.sanitizers._fuzzy_selection import EnergyBounds
from ppdm_core.sanitizers.dct_fuzzy import DctFuzzy
from ppdm_core.sanitizers.pca_laplace import PcaLaplace
from tasks.context import ReleaseContext
from tasks.sites.exchange import ASK_SENDER, Exchange
from warehouse.messages.payloads import (
    Basis,
    Bounds,
    MaskedSums,
    Selection,
    SharedFit,
    decode_bytes,
)


def build_schema(context: ReleaseContext) -> Schema:
    """Return the declared numeric columns."""
    features = (column for column in context.columns if column.role == "feature")
    return Schema(
        tuple(
            Numeric(each.name, float(cast(float, each.low)), float(cast(float, each.high)))
            for each in features
        )
    )


def make_scaling(schema: Schema, kind: str) -> Scaling:
    """Return the scaling that follows from the declared bounds alone."""
    check_widths(schema.numeric)
    d = len(schema.numeric)
    if kind == "minmax":
        return Scaling(kind, schema.lows, schema.widths)
    return Scaling(kind, np.zeros(d), np.ones(d))


def lead_by_bounds(exchange: Exchange, sanitizer: Sanitizer, schema: Schema) -> None:
    """Select coefficients from the bounds of all sites, and send the selection."""
    method, d = cast(DctFuzzy, sanitizer), len(schema.numeric)
    found = []
    for site in exchange.session.roll.sites:
        bounds = exchange.receive(site, "bounds", Bounds)
        low, high = np.array(bounds.low), np.array(bounds.high)
        if low.shape != (d,) or high.shape != (d,) or (low > high).any():
            raise BadInput(
                f"The bounds of '{site}' do not fit the {d} columns of the roll.", remedy=ASK_SENDER
            )
        found.append(EnergyBounds(low, high, 1, 0))
    pruned = method.choose_pruned(reduce(EnergyBounds.merge, found)).pruned
    selection = Selection(kept=np.setdiff1d(np.arange(d), pruned).tolist())
    for site in exchange.session.roll.sites:
        exchange.session.send(site, "selection", lambda: selection)


def lead_by_moments(exchange: Exchange, sanitizer: Sanitizer, schema: Schema) -> None:
    """Find the common basis from the sums over all sites, and send it."""
    d, sites = len(schema.numeric), exchange.session.roll.sites
    moments = IntegerMoments.from_list(
        collect_sums(exchange, "moments", 1 + d + d * (d + 1) // 2), d
    )
    check_plausible(moments, len(sites) * (d + 1))
    draft = find_basis(moments, schema, cast(PcaLaplace, sanitizer).components)
    basis = Basis(loadings=draft.loadings.tolist(), mean=draft.mean.tolist())
    for site in sites:
        exchange.session.send(site, "basis", lambda: basis)
    exchange.draft = draft, moments.n


def lead_by_scores(exchange: Exchange, sanitizer: Sanitizer, schema: Schema) -> None:
    """Complete the common fit from the sums over all sites, and send it."""
    assert exchange.draft is not None
    draft, n = exchange.draft
    levels = list_levels(schema, draft.loadings)
    count = 2 + 2 * sum(map(len, levels))
    fit = share_basis(draft, read_scores(n, levels, collect_sums(exchange, "scores", count)))
    for site in exchange.session.roll.sites:
        exchange.session.send(site, "fit", lambda: fit)


def collect_sums(exchange: Exchange, kind: str, count: int) -> list[int]:
    """Return the sum over all sites of their masked numbers."""
    parts = []
    for site in exchange.session.roll.sites:
        text = exchange.receive(site, kind, MaskedSums).values
        try:
            values = unpack_values(decode_bytes(text))
        except ValueError:
            values = []
        if len(values) != count:
            raise BadInput(
                f"The {kind} of '{site}' do not fit the columns of the roll.", remedy=ASK_SENDER
            )
        parts.append(values)
    return sum_masked(parts)


def read_scores(n: int, levels: list[Floats], sums: list[int]) -> Scores:
    """Return the scores of all sites; a flag is true at a site if its sum is not zero.

    The range of a component ends at the first level that no site exceeds.
    """
    total, squares, *flags = sums
    largest = 2**22  # see sum_scores
    ends = np.cumsum([len(each) for each in (*levels, *levels)])
    found = np.split(np.array([flag != 0 for flag in flags]), ends[:-1])
    highs, lows = found[: len(levels)], found[len(levels) :]
    is_sound = 0 <= total <= n * largest and total**2 <= n * squares <= n**2 * largest**2
    # A score lies beyond all levels below it, or above it, and never beyond the last one.
    is_sound = is_sound and all(not each[-1] and (each[:-1] >= each[1:]).all() for each in highs)
    is_sound = is_sound and all(not each[0] and (each[:-1] <= each[1:]).all() for each in lows)
    if not is_sound:
        raise BadInput(
            "The sum of the scores of all sites cannot be that of records within their bounds.",
            remedy="Nothing was released. Begin a new release with all sites.",
        )
    return Scores(
        [
            float(each[np.flatnonzero(~is_below)[-1]])
            for each, is_below in zip(levels, lows, strict=True)
        ],
        [
            float(each[np.flatnonzero(~is_above)[0]])
            for each, is_above in zip(levels, highs, strict=True)
        ],
        n,
        total,
        squares,
    )


def share_basis(draft: BasisDraft, scores: Scores) -> SharedFit:
    """Return the fit as it is sent to all sites."""
    found: dict[str, Any] = complete_basis(draft, scores)
    del found["columns"]
    return SharedFit(**{**found, "ranges": [tuple(pair) for pair in found["ranges"]]})


LEADS = {"bounds": lead_by_bounds, "moments": lead_by_moments, "scores": lead_by_scores}
