"""The centre of parties with other columns of the same persons: it chooses, and adds up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppdm_core.model.arrays import Floats
from ppdm_core.model.errors import BadInput
from ppdm_core.numerics.masks import sum_masked, sum_masked_arrays, unpack_values
from ppdm_core.sanitizers._column_parts import ColumnPart, measure_loss
from ppdm_core.sanitizers._joint_selection import JointProgramme, PartyBounds, choose_jointly
from tasks.sites.exchange import Exchange
from warehouse.messages.payloads import Bounds, Coefficients, Selection, decode_bytes

WRONG_SUM = "Nothing was released. Begin a new release with all parties."


@dataclass(frozen=True, eq=False)
class JoinedRows:
    """The coefficients of complete records, and what was lost of their energy."""

    Y: Floats  # (n, K) in a secret order of rows and columns
    loss: float  # share of the energy of all records together


def lead_columns(exchange: Exchange, part: ColumnPart) -> JoinedRows:
    """Choose the coefficients that suit all parties, and return the sums of their parts.

    ``part`` gives columns, grid and method; the centre has no columns of its own.
    """
    m, sites = len(part.schema.numeric), exchange.session.roll.sites
    bounds = [read_bounds(exchange, site, m) for site in sites]
    pruned = choose_jointly(JointProgramme(bounds, part.method.b, part.method.p)).pruned
    selection = Selection(kept=np.setdiff1d(np.arange(m), pruned).tolist())
    for site in sites:
        exchange.session.send(site, "selection", lambda: selection)
    count = len(selection.kept)
    found = {site: exchange.receive(site, "coefficients", Coefficients) for site in sites}
    sizes = {each.rows for each in found.values()}
    if len(sizes) > 1:
        raise BadInput("The parties sent coefficients of different numbers of persons.")
    steps = sum_masked_arrays([read_values(site, each, count) for site, each in found.items()])
    (total,) = sum_masked([read_energy(site, each) for site, each in found.items()])
    check_sum(steps, total, part)
    Y: Floats = np.asarray((steps + 0.5) * part.unit, dtype=np.float64)  # as DctFuzzy does
    return JoinedRows(Y, measure_loss(steps, total))


def read_bounds(exchange: Exchange, site: str, m: int) -> PartyBounds:
    """Return the bounds of a party, if they are those of all coefficients."""
    bounds = exchange.receive(site, "bounds", Bounds)
    low, high = np.array(bounds.low), np.array(bounds.high)
    if low.shape != (m,) or high.shape != (m,) or (low > high).any():
        raise BadInput(f"The bounds of '{site}' do not fit the {m} columns of the roll.")
    return PartyBounds(site, low, high - low)


def read_values(site: str, sent: Coefficients, count: int) -> NDArray[np.uint64]:
    """Return the masked coefficients of a party, (n, count)."""
    try:
        values = np.frombuffer(decode_bytes(sent.values), dtype="<u8").astype(np.uint64)
        return values.reshape(sent.rows, count)
    except ValueError:
        raise BadInput(f"The coefficients of '{site}' do not fit the selection.") from None


def read_energy(site: str, sent: Coefficients) -> list[int]:
    """Return the masked energy of a party."""
    try:
        values = unpack_values(decode_bytes(sent.energy))
    except ValueError:
        values = []
    if len(values) != 1:
        raise BadInput(f"The energy of '{site}' is not one number.")
    return values


def check_sum(steps: NDArray[np.int64], total: int, part: ColumnPart) -> None:
    """Raise BadInput if the sums cannot be those of records within their bounds; name no party."""
    parties_slack = len(part.schema.numeric)  # each party rounds by half a step at most
    reach = part.transform.compute_reach(part.schema) / part.unit + parties_slack
    largest = len(steps) * reach**2
    if np.abs(steps).max(initial=0) > reach or not 0 <= total <= largest:
        raise BadInput(
            "The sum of the coefficients of all parties cannot be that of records within their "
            "bounds.",
            remedy=WRONG_SUM,
        )
