"""The steps of a party that holds other columns of the same persons than all others.

All other parties know the order of the released columns and their own parts. What remains for them
is the part of this party, with a known map: its gate judges exactly that. A recipient sees the sums
alone. For the reconstruction of these columns that is less; for the linkage of complete records it
is more, and the centre judges it.
"""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass, replace

import numpy as np
from prefect import task
from prefect.cache_policies import NO_CACHE

from ppdm_core.attacks.other_party import OtherParty
from ppdm_core.metrics.interval_privacy import IntervalPrivacy
from ppdm_core.metrics.order_guesses import OrderGuesses
from ppdm_core.metrics.order_privacy import OrderPrivacy
from ppdm_core.model.arrays import Codes, Floats
from ppdm_core.model.errors import Defect
from ppdm_core.model.rows import ArrayRows
from ppdm_core.sanitizers.dct_fuzzy import DctFuzzy
from tasks.context import ReleaseContext
from tasks.ingest.task import reject_bad_input
from tasks.progress import Step, start_step
from tasks.redaction import redact_errors
from tasks.sites.column_parts import (
    AlignedPersons,
    Alignment,
    agree_by_columns,
    align_persons,
    mask_part,
)
from tasks.sites.exchange import Exchange
from tasks.sites.fit import scale_for_fit
from tasks.sites.pool_audit import list_figures, sign_verdict
from tasks.sites.pool_review import collect_approvals, store_pool_facts
from tasks.sites.rows import bad_rows
from tasks.sites.terms import find_column_method
from warehouse.audit_results import find_verdict
from warehouse.clock import now
from warehouse.messages.payloads import Coefficients, Pool, SiteRows, SiteVerdict, decode_bytes
from warehouse.messages.roll import CENTRE
from warehouse.publishing.manifest import digest_text
from warehouse.record_names import read_record_names
from warehouse.sanitized_tables import read_candidate, read_validated_blocks
from warehouse.stage_facts import (
    AuditedFacts,
    PoolFacts,
    SanitizedFacts,
    ValidatedFacts,
    find_facts,
    read_facts,
)
from warehouse.tables import validated_table

# What the order of columns is worth: error of who knows it, of who guesses it, orders to try.
KNOWN_ORDER = f"{OtherParty.name}.{IntervalPrivacy.name}"
ORDER_SCORES = (KNOWN_ORDER, OrderPrivacy.name, OrderGuesses.name)


@dataclass(frozen=True, eq=False)
class OwnColumns:
    """The scaled columns of this party, of all its persons."""

    method: DctFuzzy
    names: tuple[str, ...]
    X: Floats  # (n, d)
    label: Codes  # (n,) -1 without a label
    ids: list[str]


def read_own_columns(context: ReleaseContext, release_id: str) -> OwnColumns:
    """Return the validated records of this party with their ids."""
    method = find_column_method(context.make_sanitizer())
    assert method is not None and context.record_id is not None
    with context.open_run(release_id) as (db, run):
        schema = read_facts(db, release_id, ValidatedFacts).schema
        blocks = list(read_validated_blocks(db, validated_table(run), schema))
        ids = read_record_names(db, run, context.columns, context.record_id)
    X, label = (
        np.concatenate([getattr(block, part) for block in blocks]) for part in ("X", "label")
    )
    if len(ids) != len(X):
        raise Defect(f"{release_id} has {len(X)} records and {len(ids)} ids.")
    scaled = scale_for_fit(ArrayRows(schema, X, label), method)
    return OwnColumns(
        method, schema.names, np.concatenate([block.X for block in scaled.blocks()]), label, ids
    )


def read_own_part(context: ReleaseContext, release_id: str) -> Floats:
    """Return the part that the gate judged: the common persons, in the order of the table."""
    with context.open_run(release_id) as (db, run):
        names = read_facts(db, release_id, SanitizedFacts).public.columns
        found = read_candidate(db, run, names)
    return np.column_stack([found[name] for name in names])


@task(name="align the persons", cache_policy=NO_CACHE)
@redact_errors
def align_and_agree(
    context: ReleaseContext, release_id: str, exchange: Exchange
) -> tuple[ReleaseContext, AlignedPersons]:
    """Find the common persons, and return the context with them and the fit that all share.

    Only they are drawn, attacked and judged: a verdict on all persons of this party would say
    little of a few of them.
    """
    start_step(Step.AGREE)
    own = read_own_columns(context, release_id)
    alignment: Alignment = "intersection" if exchange.member.intersects else "shared_id"
    with reject_bad_input(context, release_id):
        aligned = align_persons(exchange, own.ids, alignment)
        X = own.X[aligned.places]
        has_label = context.label is not None
        given = own.names, X, aligned.key
        fit = agree_by_columns(exchange, own.method, *given, has_label=has_label)
    common = tuple(sorted(aligned.places))
    fit["persons"] = digest_text(" ".join(map(str, common)))  # of others the fit is another one
    return replace(context, shared_fit=fit, common=common), aligned


@task(name="send the part", cache_policy=NO_CACHE)
@redact_errors
def send_part(
    context: ReleaseContext, release_id: str, exchange: Exchange, aligned: AlignedPersons
) -> None:
    """Send the part of this party under masks, if its gate passed it or its reviewers approved it.

    Raise Undecided while they have to decide.
    """
    start_step(Step.SEND)
    context.open_store().home.clear_work(release_id)

    def make_part() -> Coefficients:
        facts = store_own_verdict(context, release_id)
        approvals = collect_approvals(context, release_id, facts)
        if facts.verdict.outcome == "FAIL" or (facts.verdict.outcome == "REVIEW" and not approvals):
            return Coefficients(outcome="FAIL")
        own, fit = read_own_columns(context, release_id), context.shared_fit
        assert fit is not None
        label = own.label[aligned.places].tolist() if context.label else ()
        X = own.X[aligned.places]
        rank = np.searchsorted(np.sort(aligned.places), aligned.places)  # among the common persons
        Y = read_own_part(context, release_id)[rank]
        part = own.method.make_part(own.names)
        return mask_part(exchange, part, X, Y, fit["kept"], label)

    exchange.session.send(CENTRE, "coefficients", make_part)


def store_own_verdict(context: ReleaseContext, release_id: str) -> PoolFacts:
    """Store the verdict on this party's part with rounded figures, for its reviewers."""
    with context.open_store().transaction(release_id) as db:
        found = find_facts(db, release_id, PoolFacts)
        if found is not None:
            return found
        verdict = find_verdict(db, release_id)
        report = read_facts(db, release_id, AuditedFacts).report
    if verdict is None:
        raise Defect(f"{release_id} has no verdict.")
    figures = list_figures(report, context.policy, ORDER_SCORES)
    facts = PoolFacts(verdict, tuple(figures), (), (), now().isoformat())
    store_pool_facts(context, release_id, facts)
    return facts


@task(name="judge the joined rows", cache_policy=NO_CACHE)
@redact_errors
def judge_joined_rows(
    context: ReleaseContext, release_id: str, exchange: Exchange, aligned: AlignedPersons
) -> None:
    """Check that the joined rows are of the common persons, and send the signed verdict."""
    start_step(Step.WAIT)
    pool = exchange.receive(CENTRE, "pool", Pool)

    def sign() -> SiteVerdict:
        facts = store_own_verdict(context, release_id)
        digest = check_joined_rows(pool, len(aligned.places))
        about = replace(facts, verdict=replace(facts.verdict, data_digest=digest))
        approvals = collect_approvals(context, release_id, facts)
        return sign_verdict(exchange, about, SiteRows(outcome="PASS"), approvals)

    exchange.session.send(CENTRE, "verdict", sign)


def check_joined_rows(pool: Pool, persons: int) -> str:
    """Return the digest of the joined rows; raise BadInput unless they are of so many persons."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        raw = decode_bytes(pool.data)
        rows = pq.read_table(io.BytesIO(raw)).num_rows
    except (ValueError, pa.ArrowException, OSError):
        raise bad_rows(CENTRE, "are no Parquet file") from None
    if rows != persons:
        raise bad_rows(CENTRE, f"are {rows}, and {persons} persons are common to all parties")
    return hashlib.sha256(raw).hexdigest()
