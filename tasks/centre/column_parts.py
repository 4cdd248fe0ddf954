"""The centre of parties with other columns of the same persons: it chooses, and adds up."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppdm_core.model.arrays import Codes, Floats
from ppdm_core.model.errors import BadInput
from ppdm_core.model.release import ENERGY_LOSS, Guarantee, PublicParameters
from ppdm_core.numerics.masks import sum_masked, sum_masked_arrays, unpack_values
from ppdm_core.numerics.noise_distributions import CLAMP_SCALES, LAPLACE
from ppdm_core.numerics.rounding import round_outward
from ppdm_core.sanitizers._column_parts import ColumnPart, bound_sum, measure_joined_loss
from ppdm_core.sanitizers._joint_selection import JointProgramme, PartyBounds, choose_jointly
from ppdm_core.sanitizers.dct_fuzzy import DctFuzzy
from tasks.centre.site_rows import NotPassed, SitePart
from tasks.context import ReleaseContext
from tasks.sites.exchange import ASK_SENDER, Exchange
from tasks.sites.rows import ReleasedTable
from warehouse.json_codec import to_json
from warehouse.messages.payloads import Bounds, Coefficients, Selection, decode_bytes
from warehouse.publishing.manifest import digest_text

LN_FIGURES = ("ln_component", "ln_attribute", "ln_record")
KNOWN_TO_PARTIES = (
    "Every party knows the order of the columns and its own part of each row, and so the sum of "
    "all other parts."
)
WRONG_SUM = "Nothing was released. Begin a new release with all parties."


@dataclass(frozen=True, eq=False)
class JoinedRows:
    """The coefficients of complete records, and what was lost of their energy."""

    Y: Floats  # (n, K) in a secret order of rows and columns
    label: Codes  # (n,) -1 without a label
    loss: float  # share of the energy of all records together
    losses: list[float]  # at each party, of the energy of its own columns


def lead_by_columns(exchange: Exchange, sanitizer: DctFuzzy, label: str | None = None) -> None:
    """Choose the coefficients that suit all parties, and send the selection.

    ``label`` is the name of the label, if the centre declares one.
    """
    assert sanitizer.order is not None
    m, sites = len(sanitizer.order), exchange.session.roll.sites
    sent = {site: exchange.receive(site, "bounds", Bounds) for site in sites}
    check_partition({site: each.columns for site, each in sent.items()}, sanitizer.order)
    check_label([site for site, each in sent.items() if each.has_label], label)
    bounds = [read_bounds(site, each, m) for site, each in sent.items()]
    pruned = choose_jointly(JointProgramme(bounds, sanitizer.b, sanitizer.p)).pruned
    selection = Selection(kept=np.setdiff1d(np.arange(m), pruned).tolist())
    for site in sites:
        exchange.session.send(site, "selection", lambda: selection)
    exchange.kept = selection.kept
    exchange.columns = {site: each.columns for site, each in sent.items()}


def check_partition(columns: Mapping[str, Sequence[str]], order: Sequence[str]) -> None:
    """Raise BadInput unless every column lies with exactly one party."""
    remedy = "Agree on one 'order' in [sanitizer], in which each column has one party."
    owner: dict[str, str] = {}
    for site, names in columns.items():
        for name in names:
            if name in owner:
                raise BadInput(
                    f"'{owner[name]}' and '{site}' both hold the column '{name}'.",
                    column=name,
                    remedy=remedy,
                )
            owner[name] = site
    missing = [name for name in order if name not in owner]
    unknown = [name for name in owner if name not in order]
    if missing:
        raise BadInput(
            f"No party holds the column '{missing[0]}'.", column=missing[0], remedy=remedy
        )
    if unknown:
        raise BadInput(
            f"The column '{unknown[0]}' is not in 'order'.", column=unknown[0], remedy=remedy
        )


def check_label(holders: Sequence[str], label: str | None) -> None:
    """Raise BadInput unless one party holds the label, or none if the centre declares none."""
    if len(holders) > 1:
        raise BadInput(
            f"Several parties hold a label: {', '.join(map(repr, holders))}.",
            column=label,
            remedy="Declare it in the release file of one of them.",
        )
    if label is not None and not holders:
        raise BadInput(
            f"The centre declares the label '{label}', and no party holds it.",
            column=label,
            remedy="Remove it from the release file of the centre, or declare it in that of the "
            "party that holds it.",
        )


def join_rows(exchange: Exchange, sanitizer: DctFuzzy, classes: int = 0) -> JoinedRows:
    """Wait for the masked coefficients of all parties, and return their sums.

    ``classes`` is the number of classes of the label, 0 without one.
    """
    part, count = sanitizer.make_part(()), len(exchange.kept)
    sites = exchange.session.roll.sites
    found = {site: exchange.receive(site, "coefficients", Coefficients) for site in sites}
    refused = [site for site, each in found.items() if each.outcome == "FAIL"]
    if refused:
        raise NotPassed(
            f"The gate of '{refused[0]}' did not pass its columns, so nothing is added up.",
            remedy="Ask that party; nothing was published.",
        )
    if len({each.rows for each in found.values()}) > 1:
        raise BadInput(
            "The parties sent coefficients of different numbers of persons.", remedy=ASK_SENDER
        )
    steps = sum_masked_arrays([read_values(site, each, count) for site, each in found.items()])
    (total,) = sum_masked([read_energy(site, each) for site, each in found.items()])
    check_sum(steps, total, part, len(sites))
    Y = np.asarray((steps + part.offset) * part.step, dtype=np.float64)  # as DctFuzzy releases them
    loss = measure_joined_loss(steps, total, part, len(sites))
    losses = [each.loss for each in found.values()]
    return JoinedRows(Y, read_label(found, len(steps), classes), loss, losses)


def read_label(found: Mapping[str, Coefficients], n: int, classes: int) -> Codes:
    """Return the label of each row, which one party holds; -1 without a label."""
    labels = {site: each.label for site, each in found.items() if each.label}
    if len(labels) != bool(classes):
        who = ", ".join(map(repr, labels)) or "no party"
        raise BadInput(f"A label was sent by {who}.", remedy=ASK_SENDER)
    if not labels:
        return np.full(n, -1, dtype=np.int32)
    ((site, label),) = labels.items()
    if len(label) != n:
        raise BadInput(f"'{site}' sent {len(label)} labels of {n} persons.", remedy=ASK_SENDER)
    if not all(0 <= code < classes for code in label):
        raise BadInput(
            f"'{site}' sent a class of the label that is not declared.", remedy=ASK_SENDER
        )
    return np.array(label, dtype=np.int32)


def read_bounds(site: str, bounds: Bounds, m: int) -> PartyBounds:
    """Return the bounds of a party, if they are those of all coefficients."""
    low, high = np.array(bounds.low), np.array(bounds.high)
    if low.shape != (m,) or high.shape != (m,) or (low > high).any():
        raise BadInput(
            f"The bounds of '{site}' do not fit the {m} columns of the roll.", remedy=ASK_SENDER
        )
    return PartyBounds(site, low, high - low)


def read_values(site: str, sent: Coefficients, count: int) -> NDArray[np.uint64]:
    """Return the masked coefficients of a party, (n, count)."""
    try:
        values = np.frombuffer(decode_bytes(sent.values), dtype="<u8").astype(np.uint64)
        return values.reshape(sent.rows, count)
    except ValueError:
        raise BadInput(
            f"The coefficients of '{site}' do not fit the selection.", remedy=ASK_SENDER
        ) from None


def read_energy(site: str, sent: Coefficients) -> list[int]:
    """Return the masked energy of a party."""
    try:
        values = unpack_values(decode_bytes(sent.energy))
    except ValueError:
        values = []
    if len(values) != 1:
        raise BadInput(f"The energy of '{site}' is not one number.", remedy=ASK_SENDER)
    return values


def check_sum(steps: NDArray[np.int64], total: int, part: ColumnPart, parties: int) -> None:
    """Raise BadInput if the sums cannot be those of records within their bounds; name no party."""
    slack = len(part.schema.numeric)  # each party rounds by half a step at most
    reach = part.transform.compute_reach(part.schema)
    noise = parties * CLAMP_SCALES * (part.noise_scale or 0.0)
    largest = len(steps) * (reach / part.unit + slack) ** 2
    is_far = np.abs(steps).max(initial=0) > (reach + noise) / part.step + slack
    if is_far or not 0 <= total <= largest:
        raise BadInput(
            "The sum of the coefficients of all parties cannot be that of records within their "
            "bounds.",
            remedy=WRONG_SUM,
        )


def describe_noise(part: ColumnPart, parties: int) -> dict[str, float | str]:
    """Return what recipients need to know of the noise in each sum."""
    if part.noise_scale is None:
        return {}
    variance = parties * LAPLACE.variance * part.noise_scale**2
    return {
        "noise": f"sum of {parties} Laplace variables of scale {part.noise_scale:g}",
        "noise_variance": variance,
    }


def make_guarantee(exchange: Exchange, sanitizer: DctFuzzy) -> Guarantee:
    """Return the guarantee of the sums for recipients."""
    assert sanitizer.order is not None
    schema = sanitizer.make_part(sanitizer.order).schema
    if sanitizer.noise_scale is None:
        return sanitizer.guarantee(schema, {})
    parts = [sanitizer.make_part(columns) for columns in exchange.columns.values()]
    return sanitizer.bound_parts(bound_sum(parts, exchange.kept), schema)


def make_joined_part(
    context: ReleaseContext, exchange: Exchange, sanitizer: DctFuzzy
) -> tuple[SitePart, list[SitePart]]:
    """Return the joined rows as one part, and the parties whose verdicts are needed."""
    rows = join_rows(exchange, sanitizer, len(context.label.categories) if context.label else 0)
    part = sanitizer.make_part(())
    names = tuple(f"coefficient_{i + 1}" for i in range(rows.Y.shape[1]))
    public = PublicParameters(
        method=sanitizer.name,
        space="rotated",
        columns=names,
        centre=part.transform.origin if sanitizer.centre else None,
        grid=np.full(len(names), part.step * (1 - part.offset)),
        facts={
            "transform": "orthonormal DCT-II",
            "transform_order": " ".join(str(i + 1) for i in range(len(part.schema.numeric))),
            **describe_noise(part, len(rows.losses)),
            ENERGY_LOSS: min(1.0, round_outward(rows.loss)),
            **{f"{ENERGY_LOSS}_party_{t}": each for t, each in enumerate(rows.losses, start=1)},
        },
    )
    guarantee = make_guarantee(exchange, sanitizer)
    manifest = {
        "public": to_json(public),
        "scaling": {"kind": sanitizer.scale},
        "guarantee": {
            **{name: repr(getattr(guarantee, name)) for name in LN_FIGURES},
            "kind": guarantee.kind,
            "assumptions": [*guarantee.assumptions, KNOWN_TO_PARTIES],
            "without_bound": list(guarantee.without_bound),
        },
    }
    digest = hashlib.sha256(rows.Y.tobytes() + rows.label.tobytes()).hexdigest()
    table = ReleasedTable(rows.Y, rows.label, digest)
    judges = [SitePart(site, {}, digest_text(""), table) for site in exchange.session.roll.sites]
    return SitePart("joined", manifest, digest, table), judges
