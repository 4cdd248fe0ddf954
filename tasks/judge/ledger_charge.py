"""What a release draws of which record, and the charge of the ledger with the verdict."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from ppdm_core.gates.ledger import ROUNDING_MARGIN
from ppdm_core.model.arrays import Floats, Keys, Names
from ppdm_core.model.ledger import LedgerBalance
from ppdm_core.model.policy import LEDGER_DRAWS, LEDGER_RECORD
from ppdm_core.model.release import Guarantee, Released
from ppdm_core.model.rows import Rows
from ppdm_core.model.verdict import Verdict
from ppdm_core.numerics.amplification import format_gamma
from ppdm_core.numerics.noise import Noise
from ppdm_core.sanitizers._sanitizer import Fitted, Part, Sanitizer, encode_codes
from tasks.context import ReleaseContext
from warehouse.database import Change, Run
from warehouse.integrity.seals import integrity_error
from warehouse.ledger import balance as ledger_balance
from warehouse.ledger.balance import ALL_RECORDS, LedgerScope
from warehouse.ledger.entries import digest_draws, store_entry
from warehouse.stage_facts import SanitizedFacts, ValidatedFacts

if TYPE_CHECKING:
    import pyarrow as pa

    from warehouse.transaction import Transaction

DrawLines = tuple[Names, Names, Names, Floats]  # records, both halves of the draws, ln gamma
Lines = Iterator[DrawLines]


def list_draws(
    X: Rows,
    candidate: Released | None,
    sanitizer: Sanitizer,
    noise: Noise,
    fitted: Fitted,
    release_id: str | None,
    more: Iterable[DrawLines] = (),
) -> pa.RecordBatchReader:
    """Return one line for each draw of each record, and ``more`` lines.

    ``release_id`` is given where records have no ids: then the run redraws all records. The
    ``candidate`` is only needed where a record may have several rows.
    """
    import pyarrow as pa

    parts = sanitizer.parts(X.schema, fitted)
    if release_id is not None:
        copies = count_most_copies(candidate, sanitizer)
        batches = list_table_draws(parts, copies, noise, release_id)
    else:
        batches = list_record_draws(X, candidate, sanitizer, noise, parts)
    schema = pa.schema(
        [
            pa.field("record", pa.uint64()),
            pa.field("draw_high", pa.uint64()),
            pa.field("draw_low", pa.uint64()),
            pa.field("ln_gamma", pa.float64()),
        ]
    )
    arrays = (
        pa.RecordBatch.from_arrays(list(map(pa.array, line)), schema=schema)
        for line in chain(batches, more)
    )
    return pa.RecordBatchReader.from_batches(schema, arrays)


def name_records(key: Keys, noise: Noise) -> Names:
    """Return the names of records in the ledger, which reveal nothing without the key."""
    return noise.ranks(key, "ledger")


def list_record_draws(
    X: Rows, candidate: Released | None, sanitizer: Sanitizer, noise: Noise, parts: tuple[Part, ...]
) -> Lines:
    """Yield the draws of every record, and of further rows of a record."""
    places, accounts = [], []
    for block in X.blocks():
        account = name_records(block.key, noise)
        if not sanitizer.row_aligned:
            places.append(block.record)
            accounts.append(account)
        for part in parts:
            names = noise.name_draws(block.key, part.consumed(block), part.fingerprint)
            yield (account, *split_names(names), np.full(block.n, part.ln_record))
    if not sanitizer.row_aligned:
        assert candidate is not None
        yield from list_copy_draws(
            candidate, noise, np.concatenate(places), np.concatenate(accounts)
        )


def list_copy_draws(candidate: Released, noise: Noise, places: Any, accounts: Names) -> Lines:
    """Yield the draws of rows of a record after its first: each has a key of its own."""
    last = -1
    for block in candidate.rows.blocks():
        is_copy = np.diff(block.record, prepend=last) == 0
        last = int(block.record[-1])
        account = accounts[np.searchsorted(places, block.record[is_copy])]
        consumed = encode_codes(block.label[is_copy, None])
        names = noise.name_draws(block.key[is_copy], consumed, b"copy")
        yield (account, *split_names(names), np.full(len(account), math.inf))


def list_basis_draws(records: Rows, noise: Noise, fit: str) -> Lines:
    """Yield a draw of each record that was drawn before and that a public basis is fitted on.

    What the basis reveals of such a record has no bound. ``fit`` is the digest of the fit: a later
    release with the same basis reveals no more.
    """
    for block in records.blocks():
        nothing = np.zeros((block.n, 0), dtype=np.uint8)
        names = noise.name_draws(block.key, nothing, b"basis" + fit.encode())
        yield (
            name_records(block.key, noise),
            *split_names(names),
            np.full(block.n, math.inf),
        )


def list_table_draws(parts: tuple[Part, ...], copies: int, noise: Noise, release_id: str) -> Lines:
    """Yield the draws of a table without ids, which count for all records."""
    figures = np.array([part.ln_record for part in parts] + [math.inf] * (copies - 1))
    number = np.arange(len(figures), dtype=np.int32)[:, None]
    no_key = np.zeros((len(figures), 16), dtype=np.uint8)
    names = noise.name_draws(no_key, encode_codes(number), release_id.encode())
    yield (np.full(len(figures), ALL_RECORDS, dtype=np.uint64), *split_names(names), figures)


def count_most_copies(candidate: Released | None, sanitizer: Sanitizer) -> int:
    """Return the largest number of rows that are made from one record."""
    if sanitizer.row_aligned:
        return 1
    assert candidate is not None
    records = np.concatenate([block.record for block in candidate.rows.blocks()])
    return int(np.bincount(records).max())


def split_names(names: Keys) -> tuple[Names, Names]:
    """Return the two halves of names of 16 bytes as numbers."""
    high, low = np.ascontiguousarray(names).view("<u8").T
    return high, low


def build_scope(context: ReleaseContext, guarantee: Guarantee | None = None) -> LedgerScope:
    """Return the limits and waivers of the ledger for a release.

    Draws without a bound are recorded and waived by the name of the method that makes them, not by
    that of the pipeline around it; the ``guarantee`` of the candidate names it.
    """
    names = guarantee.without_bound if guarantee else ()
    limits = {key: context.policy.limits.get(key) for key in (LEDGER_RECORD, LEDGER_DRAWS)}
    product, draws = limits[LEDGER_RECORD], limits[LEDGER_DRAWS]
    return LedgerScope(
        dataset=context.dataset,
        audience=context.audience,
        method=" and ".join(names or [context.method]),
        is_shared=not context.policy.collusion_waiver,
        waived=product.waive if product else (),
        ln_limit=math.log(product.value) + ROUNDING_MARGIN if product else math.inf,
        draw_limit=draws.value if draws else math.inf,
        terms={
            "limits": {key: limit.value for key, limit in limits.items() if limit},
            "waived": list(product.waive) if product else [],
            "collusion_waiver": context.policy.collusion_waiver,
        },
    )


def compute_balance(
    db: Transaction,
    run: Run,
    context: ReleaseContext,
    validated: ValidatedFacts,
    facts: SanitizedFacts,
) -> LedgerBalance | None:
    """Return what earlier releases spent and this one asks for; None if draws are incomplete."""
    if digest_draws(db, run) != facts.draws:
        raise integrity_error(f"The stored draws of {run.release_id} were changed.")
    charged = validated.n - facts.set_aside + facts.drawn_set_aside
    return ledger_balance.compute_balance(db, run, build_scope(context, facts.guarantee), charged)


def charge_ledger(
    change: Change,
    run: Run,
    scope: LedgerScope,
    balance: LedgerBalance | None,
    verdict: Verdict,
) -> None:
    """Store the ledger entry of a verdict, whatever the outcome.

    A release that the ledger itself refuses is not charged, because no attacker sees its draws.
    """
    refusals = {f.check for f in verdict.findings if f.outcome == "FAIL"}
    is_refused = balance is None or any(name in refusals for name in (LEDGER_RECORD, LEDGER_DRAWS))
    kind = "refused" if is_refused else "charged"
    store_entry(change, run, scope, balance, kind)
    if balance is not None:
        change.detail["records charged"] = 0 if is_refused else balance.records


def format_entry(entry: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return what outsiders may know: gamma of each release is public, and so is their product."""
    if entry is None:
        return None
    is_open = entry["unbounded"] > 0 and entry["records"] > 0  # new draws without a bound
    return {
        "gamma_added": format_total(entry["asked"], is_open),
        "gamma_so_far": format_total(entry["total"], entry["draws"] > 0),
        **({"draws": entry["draws"]} if entry["draws"] else {}),  # without a bound, of one record
        **json.loads(entry["terms"]),
    }


def format_total(ln_gamma: float, is_open: bool) -> str:
    """Return gamma in words; draws whose missing bound was waived are not part of the sum."""
    if not is_open or math.isinf(ln_gamma):
        return format_gamma(ln_gamma)
    rest = f", the rest {format_gamma(ln_gamma)}" if ln_gamma else ""
    return f"unbounded (waived){rest}"
