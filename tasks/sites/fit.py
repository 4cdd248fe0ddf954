"""A site's side of the agreement on a common fit: what it sends of its records, and when not."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np

from ppdm_core.model.arrays import Floats
from ppdm_core.model.errors import BadInput
from ppdm_core.model.manifest import canonical_json
from ppdm_core.model.rows import Rows
from ppdm_core.model.schema import Schema
from ppdm_core.numerics.integer_moments import compute_mean_steps, sum_moments
from ppdm_core.numerics.masks import MODULUS_BYTES, add_masks, hide_flags, pack_values
from ppdm_core.numerics.noise import Noise
from ppdm_core.numerics.scaling import fit_scaling
from ppdm_core.sanitizers import Sanitizer
from ppdm_core.sanitizers._basis import list_levels, sum_scores
from ppdm_core.sanitizers.dct_fuzzy import DctFuzzy
from tasks.sites.exchange import ASK_SENDER, Exchange
from warehouse.checkpoints import checkpoint
from warehouse.home import translate_disk_errors
from warehouse.integrity.key_files import write_atomically
from warehouse.messages.payloads import (
    Basis,
    Bounds,
    MaskedSums,
    OrderKey,
    Payload,
    Selection,
    SharedFit,
    encode_bytes,
)
from warehouse.messages.roll import CENTRE

ReadRows = Callable[[], Rows]  # the records that the fit learns from, scaled


def agree_by_bounds(exchange: Exchange, sanitizer: Sanitizer, read: ReadRows) -> dict[str, Any]:
    """Send the bounds of energy shares, and return the fit that the centre's selection gives.

    The first site makes the key of the column order and sends it to the other sites.
    """
    method, rows = cast(DctFuzzy, sanitizer), read()
    own = method.measure_bounds(rows)
    if not own.count:
        raise BadInput(
            "No record of this site has energy to keep.",
            remedy="Check the feature columns, or change 'centre' in [sanitizer].",
        )
    key = agree_on_order(exchange)
    bounds = Bounds(low=own.low.tolist(), high=own.high.tolist())
    exchange.session.send(CENTRE, "bounds", lambda: bounds)
    kept = exchange.receive(CENTRE, "selection", Selection).kept
    d = len(rows.schema.numeric)
    if kept != sorted(set(kept)) or not kept or kept[-1] >= d:
        raise BadInput("The centre selected coefficients that do not exist.", remedy=ASK_SENDER)
    return dict(method.share_fit(rows.schema, kept, own.skipped, Noise(key)))


def agree_on_order(exchange: Exchange) -> bytes:
    """Return the key of the column order, which the centre does not learn."""
    session, name = exchange.session, exchange.member.name
    first, *others = session.roll.sites
    if name != first:
        return bytes.fromhex(exchange.receive(first, "order", OrderKey).key)
    key = session.derive_key("order")
    for other in others:
        session.send(other, "order", lambda: OrderKey(key=key.hex()))
    return key


def send_moments(exchange: Exchange, sanitizer: Sanitizer, read: ReadRows) -> None:
    """Send masked moments of the records set aside."""
    rows = read()
    d = len(rows.schema.numeric)
    if rows.n <= d:
        raise BadInput(
            f"A common basis of {d} columns needs more than {d} set-aside records of every site; "
            f"this site has {rows.n}.",
            remedy="Release more records, or raise 'basis_share' at all sites.",
        )
    check_moments_once(exchange, sanitizer)
    exchange.session.send(
        CENTRE, "moments", lambda: mask(exchange, "moments", sum_moments(rows).as_list())
    )


def agree_by_scores(exchange: Exchange, sanitizer: Sanitizer, read: ReadRows) -> dict[str, Any]:
    """Send masked sums of the scores in the basis of the centre, and return the common fit."""
    session, rows = exchange.session, read()
    schema = rows.schema
    d = len(schema.numeric)
    basis = exchange.receive(CENTRE, "basis", Basis)
    loadings, mean = check_basis(basis, schema)
    own = sum_scores(rows, loadings, mean)
    levels = list_levels(schema, loadings)
    flags = [
        *(value > level for value, each in zip(own.high, levels, strict=True) for level in each),
        *(value < level for value, each in zip(own.low, levels, strict=True) for level in each),
    ]

    def mask_scores() -> MaskedSums:
        hidden = hide_flags(flags, os.urandom(MODULUS_BYTES * len(flags)))
        return mask(exchange, "scores", [own.total, own.squares, *hidden], basis)

    session.send(CENTRE, "scores", mask_scores)
    fit = exchange.receive(CENTRE, "fit", SharedFit)
    ranges = np.array(fit.ranges)
    encloses = ranges.shape == (len(own.low), 2)
    encloses = encloses and bool(
        (ranges[:, 0] <= own.low).all() and (ranges[:, 1] >= own.high).all()
    )
    if fit.loadings != basis.loadings or len(fit.variances) != d or not encloses:
        raise BadInput(
            "The fit of the centre does not follow from what this site sent.", remedy=ASK_SENDER
        )
    return {
        "columns": list(schema.names),
        "loadings": fit.loadings,
        "variances": fit.variances,
        "ranges": [list(pair) for pair in fit.ranges],
        "dropped_variance": fit.dropped_variance,
    }


def mask(
    exchange: Exchange, kind: str, values: list[int], answered: Payload | None = None
) -> MaskedSums:
    """Return numbers under masks; ``answered`` is the message of the centre that they answer."""
    session, secrets = exchange.session, share_secrets(exchange)
    context = list_mask_context(exchange, kind, len(values), answered)
    masked = add_masks(values, session.name, secrets, context)
    return MaskedSums(values=encode_bytes(pack_values(masked)))


def share_secrets(exchange: Exchange) -> dict[str, bytes]:
    """Return what this site shares with each other site, and with no third party."""
    session = exchange.session
    others = (site for site in session.roll.sites if site != session.name)
    return {other: session.share_secret(other) for other in others}


def list_mask_context(
    exchange: Exchange, kind: str, count: int, answered: Payload | None = None
) -> tuple[str, ...]:
    """Return what the masks of so many numbers are bound to, for `add_masks` and `mask_array`.

    Masks cancel only if all sites bind them to the same roll, round and message of the centre. A
    centre that asks one site another question than the others learns no sum.
    """
    content = None if answered is None else answered.model_dump(mode="json")
    digest = hashlib.sha256(canonical_json(content).encode()).hexdigest()
    return exchange.session.roll.digest, kind, str(count), digest


def check_basis(basis: Basis, schema: Schema) -> tuple[Floats, Floats]:
    """Return loadings and mean; raise BadInput if they are not those of a basis."""
    loadings, mean, d = np.array(basis.loadings), np.array(basis.mean), len(schema.numeric)
    is_sound = loadings.ndim == 2 and loadings.shape[0] == d
    s = loadings.shape[1] if is_sound else 0
    is_sound = 1 <= s <= d and bool((np.abs(loadings) <= 1).all())  # so that no product overflows
    if not is_sound or np.max(np.abs(loadings.T @ loadings - np.eye(s))) > 1e-4:
        raise BadInput("The centre sent loadings that are not orthonormal.", remedy=ASK_SENDER)
    reach = schema.widths / 2 + compute_mean_steps(schema) / 2  # it is rounded
    if mean.shape != (d,) or (np.abs(mean) > reach).any():
        raise BadInput("The centre sent a mean outside the bounds.", remedy=ASK_SENDER)
    return loadings, mean


def check_moments_once(exchange: Exchange, sanitizer: Sanitizer) -> None:
    """Record that moments are sent for a roll; raise BadInput if others were sent before.

    The difference of two sums could be the moments of one site, or of one record. So another round
    needs a waiver, and no waiver allows a roll with more, fewer or other sites than an earlier one.
    """
    path = exchange.entry.folder.parent / "moments.json"
    earlier = json.loads(path.read_text()) if path.exists() else []
    roll = exchange.session.roll
    sites = {site: roll.find(site).fingerprint for site in roll.sites}
    if any(each["roll"] == roll.digest for each in earlier):
        return
    for each in earlier:
        if each["sites"] != sites:
            raise BadInput(
                "This site sent moments for a roll with other sites or keys than this one: the "
                "difference of both sums would be the moments of one site.",
                remedy="Release together with exactly the sites of the earlier roll.",
            )
    if earlier and not sanitizer.refit_waiver:
        raise BadInput(
            "This site sent moments for a common basis before; two sums around one changed record "
            "reveal that record.",
            remedy='Waive it by name: refit_waiver = "who and why" in [sanitizer].',
        )
    store_moments(path, [*earlier, {"roll": roll.digest, "sites": sites}])
    checkpoint("moments recorded")


def store_moments(path: Path, entries: list[dict[str, Any]]) -> None:
    """Store for which rolls moments were sent."""
    with translate_disk_errors(path):
        write_atomically(path, json.dumps(entries))


AGREEMENTS: dict[str, Callable[[Exchange, Sanitizer, ReadRows], dict[str, Any] | None]] = {
    "bounds": agree_by_bounds,
    "moments": send_moments,
    "scores": agree_by_scores,
}


def scale_for_fit(rows: Rows, sanitizer: Sanitizer) -> Rows:
    """Return rows as the method sees them; min-max scaling follows from the declared bounds."""
    return fit_scaling(rows, sanitizer.scale).apply(rows)
