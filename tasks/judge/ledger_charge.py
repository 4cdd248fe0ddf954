"""What a release draws of whom, and what the ledger makes of it with the verdict."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ppdm_core.gates.ledger import ROUNDING
from ppdm_core.model.arrays import Floats, Keys
from ppdm_core.model.ledger import Account
from ppdm_core.model.policy import LEDGER_DRAWS, LEDGER_RECORD
from ppdm_core.model.release import Released
from ppdm_core.model.rows import Rows
from ppdm_core.model.verdict import Verdict
from ppdm_core.numerics.amplification import in_words
from ppdm_core.numerics.noise import Noise
from ppdm_core.sanitizers._sanitizer import Fitted, Part, Sanitizer, code_bytes
from tasks.context import Plan
from warehouse.database import Change, Run, read_fact
from warehouse.integrity.seals import broken
from warehouse.ledger import balance as accounts
from warehouse.ledger import entries as ledger
from warehouse.ledger.balance import EVERYBODY, Terms

if TYPE_CHECKING:
    import pyarrow as pa

Names = NDArray[np.uint64]  # (n,)


def drawn(
    X: Rows,
    candidate: Released,
    sanitizer: Sanitizer,
    noise: Noise,
    fitted: Fitted,
    run: Run | None,
) -> pa.RecordBatchReader:
    """A line for each thing that is drawn of each record. ``run`` where records have no ids: then
    it draws everybody anew."""
    import pyarrow as pa

    parts = sanitizer.parts(X.schema, fitted)
    if run is not None:
        batches = table_lines(parts, most_copies(candidate, sanitizer), noise, run)
    else:
        batches = record_lines(X, candidate, sanitizer, noise, parts)
    schema = pa.schema(
        [
            pa.field("record", pa.uint64()),
            pa.field("draw_high", pa.uint64()),
            pa.field("draw_low", pa.uint64()),
            pa.field("ln_gamma", pa.float64()),
        ]
    )
    arrays = (
        pa.RecordBatch.from_arrays(list(map(pa.array, line)), schema=schema) for line in batches
    )
    return pa.RecordBatchReader.from_batches(schema, arrays)


Lines = Iterator[tuple[Names, Names, Names, Floats]]


def record_lines(
    X: Rows, candidate: Released, sanitizer: Sanitizer, noise: Noise, parts: tuple[Part, ...]
) -> Lines:
    places, accounts = [], []
    for block in X.blocks():
        account = noise.ranks(block.key, "ledger")
        places.append(block.record)
        accounts.append(account)
        for part in parts:
            names = noise.draw_names(block.key, part.consumed(block), part.fingerprint)
            yield (account, *halves(names), np.full(block.n, part.ln_record))
    if not sanitizer.row_aligned:
        yield from copy_lines(candidate, noise, np.concatenate(places), np.concatenate(accounts))


def copy_lines(candidate: Released, noise: Noise, places: Any, accounts: Names) -> Lines:
    """Rows of a record beyond its first: further draws of it, each with a key of its own."""
    last = -1
    for block in candidate.rows.blocks():
        is_copy = np.diff(block.record, prepend=last) == 0
        last = int(block.record[-1])
        account = accounts[np.searchsorted(places, block.record[is_copy])]
        consumed = code_bytes(block.label[is_copy, None])
        names = noise.draw_names(block.key[is_copy], consumed, b"copy")
        yield (account, *halves(names), np.full(len(account), math.inf))


def table_lines(parts: tuple[Part, ...], copies: int, noise: Noise, run: Run) -> Lines:
    figures = np.array([part.ln_record for part in parts] + [math.inf] * (copies - 1))
    number = np.arange(len(figures), dtype=np.int32)[:, None]
    nobody = np.zeros((len(figures), 16), dtype=np.uint8)
    names = noise.draw_names(nobody, code_bytes(number), run.release_id.encode())
    yield (np.full(len(figures), EVERYBODY, dtype=np.uint64), *halves(names), figures)


def most_copies(candidate: Released, sanitizer: Sanitizer) -> int:
    if sanitizer.row_aligned:
        return 1
    records = np.concatenate([block.record for block in candidate.rows.blocks()])
    return int(np.bincount(records).max())


def halves(names: Keys) -> tuple[Names, Names]:
    high, low = np.ascontiguousarray(names).view("<u8").T
    return high, low


def terms_of(plan: Plan, facts: Mapping[str, Any] | None = None) -> Terms:
    """By what was sanitized: draws without a bound are told and waived by the name of the method
    inside that makes them, not by that of the pipeline around it."""
    names = (facts or {}).get("guarantee", {}).get("without_bound")
    limits = {key: plan.policy.limits.get(key) for key in (LEDGER_RECORD, LEDGER_DRAWS)}
    product, draws = limits[LEDGER_RECORD], limits[LEDGER_DRAWS]
    return Terms(
        dataset=plan.dataset,
        audience=plan.audience,
        method=" and ".join(names or [plan.method]),
        is_shared=not plan.policy.collusion_waiver,
        waived=product.waive if product else (),
        line=math.log(product.value) + ROUNDING if product else math.inf,
        draw_line=draws.value if draws else math.inf,
        told={
            "limits": {key: limit.value for key, limit in limits.items() if limit},
            "waived": list(product.waive) if product else [],
            "collusion_waiver": plan.policy.collusion_waiver,
        },
    )


def weigh(change: Change, run: Run, plan: Plan) -> Account | None:
    """What earlier releases spent and this one asks for; None if that cannot be told."""
    charge_earlier(change, run)
    valid = read_fact(change.db, run.release_id, "validated")
    facts = read_fact(change.db, run.release_id, "sanitized")
    if valid is None or facts is None:
        return None
    if ledger.draws_digest(change.db, run) != facts["draws"]:
        raise broken(f"What {run.release_id} draws of whom was changed.")
    return accounts.weigh(change.db, run, terms_of(plan, facts), valid["n"] - facts["set_aside"])


def charge(change: Change, run: Run, plan: Plan, account: Account | None, verdict: Verdict) -> None:
    """For every outcome; what only the ledger refuses was drawn for nobody."""
    refusals = {f.check for f in verdict.findings if f.outcome == "FAIL"}
    is_refused = account is None or any(name in refusals for name in (LEDGER_RECORD, LEDGER_DRAWS))
    kind = "refused" if is_refused else "charged"
    facts = read_fact(change.db, run.release_id, "sanitized")
    ledger.charge(change, run, terms_of(plan, facts), account, kind)
    if account is not None:
        change.detail["records charged"] = 0 if is_refused else account.records


def charge_earlier(change: Change, run: Run) -> None:
    """Verdicts without an entry; there are some where releases are older than the ledger."""
    rows = change.db.execute(
        "select v.release_id, f.value from audit.verdict v join meta.run r using (release_id) "
        "left join meta.fact f on f.release_id = v.release_id and f.kind = 'sanitized' "
        "where r.dataset = ? and v.release_id not in (select release_id from ledger.entry) "
        "order by r.number",
        [run.dataset],
    ).fetchall()
    for release_id, value in rows:
        facts: dict[str, Any] = json.loads(value) if value else {}
        ln_gamma = float(facts.get("guarantee", {}).get("ln_record", "inf"))
        terms = Terms(run.dataset, "", facts.get("method", "unknown"))
        ledger.inherit(change, terms, release_id, ln_gamma)


def told_entry(entry: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """What outsiders may know: gamma of each release is public, and so is their product."""
    if entry is None:
        return None
    is_open = entry["unbounded"] > 0 and entry["records"] > 0  # draws without a bound, new ones
    return {
        "gamma_added": with_waived(entry["asked"], is_open),
        "gamma_so_far": with_waived(entry["total"], entry["draws"] > 0),
        **({"draws": entry["draws"]} if entry["draws"] else {}),  # without a bound, of one record
        **json.loads(entry["terms"]),
    }


def with_waived(ln_gamma: float, is_open: bool) -> str:
    """A sum leaves out what was waived, which has no bound all the same."""
    if not is_open or math.isinf(ln_gamma):
        return in_words(ln_gamma)
    rest = f", the rest {in_words(ln_gamma)}" if ln_gamma else ""
    return f"unbounded (waived){rest}"
