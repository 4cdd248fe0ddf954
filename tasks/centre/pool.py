"""The pool: the rows of all sites in an order that follows from their content."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ppdm_core.model.release import Guarantee
from ppdm_core.model.rows import make_position_keys
from ppdm_core.model.schema import Categorical, Schema
from ppdm_core.numerics.scaling import Scaling
from tasks.centre.fit import build_schema, make_scaling
from tasks.centre.site_rows import SitePart, read_public
from tasks.context import ReleaseContext
from tasks.ingest.task import build_settings
from tasks.sanitize.release_writer import decode
from warehouse.database import Run, Store
from warehouse.ledger.entries import store_draws
from warehouse.messages.payloads import ClassifierModel
from warehouse.ordered_parts import ORDER
from warehouse.parquet_parts import encode_keys
from warehouse.sanitized_tables import create_table, digest_candidate, write_candidate
from warehouse.sql import KEY, ROW
from warehouse.stage_facts import SanitizedFacts, ValidatedFacts, store_facts
from warehouse.stages import Stage
from warehouse.tables import candidate_table

if TYPE_CHECKING:
    import pyarrow as pa

WEAKER = ("bounded", "bounded_given_basis", "empirical")  # kinds of guarantee
MIN_VARIANCE_SHARE = 1e-9  # of the largest variance, for a feature that is constant in a class


def digest_parts(parts: Sequence[SitePart]) -> str:
    """Return what identifies the input of the centre: the manifests of all sites."""
    text = "\n".join(f"{part.name} {part.manifest_digest}" for part in parts)
    return hashlib.sha256(text.encode()).hexdigest()


def stack_rows(parts: Sequence[SitePart]) -> tuple[np.ndarray, np.ndarray]:
    """Return numbers and label codes of all sites together."""
    Y = np.concatenate([part.table.Y for part in parts])
    return Y, np.concatenate([part.table.label for part in parts])


def rank_pool(Y: np.ndarray, label: np.ndarray) -> NDArray[np.uint64]:
    """Return a rank of each row that follows from the content of all rows, not from its site."""
    rows = np.ascontiguousarray(np.column_stack([Y + 0.0, label.astype(np.float64)]))
    digests = [hashlib.blake2b(row.tobytes(), digest_size=16).digest() for row in rows]
    content = hashlib.sha256(b"".join(sorted(digests))).digest()
    ranks = [hashlib.blake2b(each, key=content, digest_size=8).digest() for each in digests]
    return np.frombuffer(b"".join(ranks), dtype="<u8")


def make_pool_table(
    context: ReleaseContext, columns: tuple[str, ...], parts: Sequence[SitePart]
) -> pa.Table:
    """Return the pool as the table of a candidate."""
    import pyarrow as pa

    Y, label = stack_rows(parts)
    found: dict[str, Any] = {name: pa.array(Y[:, j]) for j, name in enumerate(columns)}
    if context.label:
        found[context.label.name] = decode(label, context.label.categories)
    found[ORDER] = pa.array(rank_pool(Y, label))
    found[ROW] = pa.array(np.arange(len(Y)))
    found[KEY] = encode_keys(make_position_keys(len(Y)))
    return pa.table(found)


def store_pool(context: ReleaseContext, store: Store, run: Run, parts: Sequence[SitePart]) -> None:
    """Store the pool as the candidate of the run of the centre, with its facts.

    The centre has no original records: the stages before are passed without a table.
    """
    schema, first = describe_schema(context), parts[0].manifest
    public = read_public(first)
    scaling = make_scaling(build_schema(context), first["scaling"]["kind"])
    if run.stage == Stage.CREATED:
        with store.advance(run, Stage.RAW, sites=len(parts)):
            pass
    if run.stage in (Stage.CREATED, Stage.RAW):
        with store.advance(run, Stage.VALIDATED) as change:
            rows = sum(len(part.table.Y) for part in parts)
            store_facts(change.db, run, ValidatedFacts(rows, digest_parts(parts), schema))
            store_facts(change.db, run, build_settings(context))
            change.detail.update(rows=rows)
    table = make_pool_table(context, public.columns, parts)
    columns = public.columns + ((context.label.name,) if context.label else ())
    path, work = store.home.candidate(run.release_id), store.home.work(run.release_id)
    data_digest = write_candidate(table.to_reader(), len(table), columns, path, work)
    with store.advance(run, Stage.SANITIZED) as change:
        create_table(change.db, candidate_table(run), table)
        facts = SanitizedFacts(
            data_digest=data_digest,
            table_digest=digest_candidate(change.db, run),
            method=context.method,
            parameters=context.parameters,
            public=public,
            schema=Scaling.scale_schema(scaling, schema),
            guarantee=combine_guarantees(parts),
            atom=1.0,  # the centre has no original to compare with
            counts={},
            scaling=scaling,
            released=sum(len(part.table.Y) for part in parts),
            set_aside=0,
            set_aside_fits=(),
            drawn_set_aside=0,
            fit=None,
            fitted="",
            draws=store_draws(change.db, run, empty_draws()),
            same_columns=public.space == "original",
            row_aligned=False,
        )
        store_facts(change.db, run, facts)
        change.detail["rows"] = facts.released


def empty_draws() -> pa.Table:
    """Return no draws: the ledgers stay with the sites."""
    import pyarrow as pa

    kinds = {"record": pa.uint64(), "draw_high": pa.uint64(), "draw_low": pa.uint64()}
    return pa.table(
        {name: pa.array([], kind) for name, kind in kinds.items()}
        | {"ln_gamma": pa.array([], pa.float64())}
    )


def describe_schema(context: ReleaseContext) -> Schema:
    """Return the declared columns with the label."""
    label = context.label
    found = Categorical(label.name, label.categories) if label else None
    return Schema(build_schema(context).numeric, label=found)


def combine_guarantees(parts: Sequence[SitePart]) -> Guarantee:
    """Return the weakest guarantee of all sites, with the conditions of each."""
    found = [read_guarantee(part.manifest["guarantee"]) for part in parts]
    assumptions = dict.fromkeys(line for each in found for line in each.assumptions)
    weakest = max(found, key=lambda each: WEAKER.index(each.kind))
    return Guarantee(
        weakest.kind,
        max(each.ln_component for each in found),
        max(each.ln_attribute for each in found),
        max(each.ln_record for each in found),
        tuple(assumptions),
        tuple(dict.fromkeys(name for each in found for name in each.without_bound)),
    )


def read_guarantee(data: dict[str, Any]) -> Guarantee:
    """Return the guarantee of a manifest, whose figures are text."""
    return Guarantee(
        data["kind"],
        float(data["ln_component"]),
        float(data["ln_attribute"]),
        float(data["ln_record"]),
        tuple(data["assumptions"]),
        tuple(data["without_bound"]),
    )


def train_models(parts: Sequence[SitePart]) -> list[ClassifierModel]:
    """Return naive Bayes classifiers on the rows of the first 1, 2, ... sites.

    Only rows in the original columns can be compared with the test rows of a site.
    """
    if read_public(parts[0].manifest).space != "original":
        return []
    return [
        train_model(len(some), *stack_rows(some))
        for some in (parts[: count + 1] for count in range(len(parts)))
    ]


def train_model(sites: int, Y: np.ndarray, label: np.ndarray) -> ClassifierModel:
    """Return means, variances and shares of each class."""
    classes, counts = np.unique(label, return_counts=True)
    floor = MIN_VARIANCE_SHARE * max(float(np.var(Y, axis=0).max()), 1e-300)
    rows = [Y[label == code] for code in classes]
    return ClassifierModel(
        sites=sites,
        classes=classes.tolist(),
        priors=(counts / counts.sum()).tolist(),
        means=[each.mean(axis=0).tolist() for each in rows],
        variances=[(each.var(axis=0) + floor).tolist() for each in rows],
    )
