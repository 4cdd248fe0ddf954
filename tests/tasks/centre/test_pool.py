"""What the centre accepts of sites, how it pools rows, and when it publishes."""

from __future__ import annotations

import hashlib
import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ppdm_core.model.errors import BadInput, PpdmError
from ppdm_core.model.manifest import sign
from ppdm_core.model.statement import SITE_VERDICT, sign_statement
from tasks.centre.pool import (
    combine_guarantees,
    digest_parts,
    rank_pool,
    stack_rows,
    train_models,
)
from tasks.centre.site_rows import NotPassed, SitePart, collect_parts
from tasks.centre.verdicts import collect_verdicts, merge_figures, reach_pool_verdict
from tasks.context import ReleaseContext
from tasks.sites.exchange import Exchange
from tasks.sites.model_error import measure_model_errors, predict
from tasks.sites.rows import ReleasedTable, find_own_rows, parse_table
from tests.support.parties import TERMS, Parties
from warehouse.columns import Column, Source
from warehouse.database import Run
from warehouse.messages.payloads import SiteRows, SiteVerdict, encode_bytes
from warehouse.messages.roll import CENTRE

CLASSES = ("calm", "tense")
POOL = "f" * 64


@pytest.fixture
def context() -> ReleaseContext:
    from ppdm_core.model.policy import Policy

    numeric: dict[str, Any] = {"role": "feature", "type": "numeric", "low": 0.0, "high": 1.0}
    return ReleaseContext(
        folder="",
        file_digest="f",
        home="",
        dataset="ward",
        owner="o",
        audience="a",
        source=Source("csv", ""),
        columns=(
            Column("mood", "label", "categorical", categories=CLASSES),
            Column("x", **numeric),
            Column("y", **numeric),
        ),
        method="kde_resample",
        parameters={"bandwidth": "corrected"},
        policy=Policy(required=(), limits={}),
    )


def make_file(n: int = 30, seed: int = 0, **columns: Any) -> bytes:
    """Return released rows as a Parquet file."""
    rng = np.random.default_rng(seed)
    found = {
        "x": pa.array(rng.random(n)),
        "y": pa.array(rng.random(n)),
        "mood": pa.array([CLASSES[i % 2] for i in range(n)]),
        **columns,
    }
    out = io.BytesIO()
    pq.write_table(pa.table(found), out)
    return out.getvalue()


def make_twice(name: str) -> bytes:
    """Return released rows with a column twice."""
    out = io.BytesIO()
    X, moods = pa.array([0.5] * 30), pa.array([CLASSES[0]] * 30)
    pq.write_table(pa.table([X, X, moods], names=[name, name, "mood"]), out)
    return out.getvalue()


PUBLIC: dict[str, Any] = {
    "method": "kde_resample",
    "space": "original",
    "columns": ["x", "y"],
    "facts": {},
}
GUARANTEE: dict[str, Any] = {
    "kind": "empirical",
    "ln_component": "inf",
    "ln_attribute": "inf",
    "ln_record": "inf",
    "assumptions": ["none"],
    "without_bound": ["kde_resample"],
}


def make_manifest(data: bytes, n: int, **changes: Any) -> dict[str, Any]:
    return {
        "dataset": "ward",
        "release_id": "ward-0001",
        "method": "kde_resample",
        "parameters": {"bandwidth": "corrected"},
        "public": PUBLIC,
        "features": ["x", "y"],
        "scaling": {"kind": "minmax"},
        "label": "mood",
        "noise": {"scheme": "s"},
        "guarantee": GUARANTEE,
        "verdict": {"outcome": "PASS"},
        "rows": n,
        "files": {"data.parquet": {"sha256": hashlib.sha256(data).hexdigest()}},
        **changes,
    }


class Exchanged:
    """A centre and three sites that have begun a session."""

    def __init__(self, folder: Path) -> None:
        self.parties = Parties(folder)
        self.sessions = self.parties.begin()

    def open(self, name: str) -> Exchange:
        exchange = Exchange(self.parties.enter(name), TERMS, 0.0)
        exchange.begin()
        return exchange

    def send_rows(self, site: str, signer: str | None = None, **changes: Any) -> None:
        """Send rows of a site with a signed manifest; the changes are those of its fields."""
        seed = self.parties.sites.index(site)
        data = changes.pop("data", None) or make_file(seed=seed)
        manifest = make_manifest(make_file(seed=seed), 30, **changes)
        raw = sign(manifest, self.parties.keys[signer or site])
        rows = SiteRows(outcome="PASS", manifest=raw.decode(), data=encode_bytes(data))
        self.sessions[site].send(CENTRE, "rows", lambda: rows)


@pytest.fixture
def exchanged(tmp_path: Path) -> Exchanged:
    return Exchanged(tmp_path)


def collect(exchanged: Exchanged, context: ReleaseContext) -> list[SitePart]:
    return collect_parts(context, exchanged.open(CENTRE))


def test_collect_parts_sound_rows_of_all_sites(exchanged: Exchanged, context: ReleaseContext):
    for site in exchanged.parties.sites:
        exchanged.send_rows(site)
    parts = collect(exchanged, context)
    assert [part.name for part in parts] == list(exchanged.parties.sites)
    Y, label = stack_rows(parts)
    assert Y.shape == (90, 2) and set(label) == {0, 1}
    assert combine_guarantees(parts).kind == "empirical"
    assert len(digest_parts(parts)) == 64


BAD_ROWS: dict[str, tuple[dict[str, Any], str]] = {
    "manifest of another site": ({"signer": "south"}, "signed with another key"),
    "other rows": ({"data": make_file(seed=9)}, "are not those that its manifest describes"),
    "other number of rows": ({"rows": 31}, "are not those that its manifest describes"),
    "another dataset": ({"dataset": "clinic"}, "another dataset or method"),
    "another method": ({"method": "dct_fuzzy"}, "another dataset or method"),
    "other parameters": ({"parameters": {"bandwidth": "paper"}}, "other parameters"),
    "refused": ({"verdict": {"outcome": "FAIL"}}, "no verdict that allows"),
    "another scaling": ({"scaling": {"kind": "none"}}, "differ in 'scaling'"),
    "other facts": (
        {"public": {**PUBLIC, "facts": {"kernel": "another"}}},
        "differ in 'public'",
    ),
    "no Parquet": ({"data": b"text"}, "are no Parquet file"),
    "more columns": ({"data": make_file(person=pa.array(["p"] * 30))}, "have other columns"),
    "text": ({"data": make_file(y=pa.array(["1"] * 30))}, "not numeric"),
    "not a number": ({"data": make_file(y=pa.array([float("nan")] * 30))}, "not numbers"),
    "label": ({"data": make_file(mood=pa.array(["angry"] * 30))}, "label that the roll does not"),
    "label of parts": (
        {"data": make_file(mood=pa.array([{"a": 1}] * 30))},
        "label that the roll does not",
    ),
    "label that is no text": (
        {"data": make_file(mood=pa.array([b"\xff"] * 30))},
        "label that the roll does not",
    ),
    "no label": (
        {"data": make_file(mood=pa.array([None] * 30, pa.string()))},
        "label that the roll does not",
    ),
    "a column twice": (
        {"public": {**PUBLIC, "columns": ["x", "x"]}, "data": make_twice("x")},
        "are no Parquet file",
    ),
    "number missing": ({"data": make_file(y=pa.array([None] * 30, pa.float64()))}, "not numbers"),
    **{
        f"manifest with {name} {value}": ({name: value}, "without the fields of a release")
        for name, value in (
            ("verdict", {}),
            ("verdict", None),
            ("parameters", None),
            ("public", {}),
            ("public", {**PUBLIC, "columns": []}),
            ("public", {**PUBLIC, "space": "another"}),
            ("public", {**PUBLIC, "grid": "wide"}),
            ("public", {**PUBLIC, "further": 1}),
            ("public", {**PUBLIC, "facts": 1}),
            ("guarantee", {}),
            ("guarantee", {**GUARANTEE, "kind": "none"}),
            ("guarantee", {**GUARANTEE, "ln_record": "small"}),
            ("guarantee", {**GUARANTEE, "ln_record": "nan"}),
            ("scaling", {}),
            ("files", {"data.parquet": "f"}),
        )
    },
    "manifest without the file": ({"files": {}}, "are not those that its manifest describes"),
}


@pytest.mark.extended
@pytest.mark.parametrize("case", BAD_ROWS)
def test_collect_parts_bad_rows_refused(exchanged: Exchanged, context: ReleaseContext, case: str):
    changes, words = BAD_ROWS[case]
    for site in exchanged.parties.sites:
        exchanged.send_rows(site, **(dict(changes) if site == "north" else {}))
    with pytest.raises(PpdmError, match=words):
        collect(exchanged, context)


def test_collect_parts_own_waivers_of_the_parties_accepted(
    exchanged: Exchanged, context: ReleaseContext
):
    """Who waived a second fit, and why, is each party's own."""
    bandwidth = context.parameters
    for site in exchanged.parties.sites:
        exchanged.send_rows(site, parameters={**bandwidth, "refit_waiver": f"DPO of {site}"})
    waived = replace(context, parameters={**bandwidth, "refit_waiver": "DPO of the centre"})
    assert len(collect(exchanged, waived)) == 3


def test_collect_parts_refused_by_the_gate_of_a_site(exchanged: Exchanged, context: ReleaseContext):
    exchanged.send_rows("east")
    exchanged.send_rows("south")
    exchanged.sessions["north"].send(CENTRE, "rows", lambda: SiteRows(outcome="FAIL"))
    with pytest.raises(NotPassed, match="The gate of 'north' did not pass its rows"):
        collect(exchanged, context)


def test_rank_pool_order_does_not_follow_the_sites():
    rng = np.random.default_rng(0)
    Y, label = rng.random((300, 2)), rng.integers(0, 2, 300)
    ranks = rank_pool(Y, label)
    assert len(set(ranks.tolist())) == 300
    order = rng.permutation(300)
    assert np.array_equal(rank_pool(Y[order], label[order]), ranks[order])
    site = np.repeat([0, 1, 2], 100)[np.argsort(ranks)]
    assert abs(np.corrcoef(site, np.arange(300))[0, 1]) < 0.25
    other = rank_pool(np.append(Y, [[0.5, 0.5]], axis=0), np.append(label, 0))[:300]
    assert not np.array_equal(np.argsort(ranks), np.argsort(other))


def make_table(rows: list[list[float]], label: list[int]) -> ReleasedTable:
    return ReleasedTable(np.array(rows), np.array(label, dtype=np.int32), "")


def test_find_own_rows_of_equal_rows_as_many_as_were_sent():
    pool = make_table([[1.0], [2.0], [1.0], [3.0], [1.0]], [0, 0, 0, 0, 1])
    own = make_table([[1.0], [3.0]], [0, 0])
    assert find_own_rows(pool, own).tolist() == [True, False, False, True, False]


@pytest.mark.parametrize(
    ("rows", "label", "words"),
    [
        ([[4.0]], [0], "does not hold the rows of this site"),
        ([[1.0], [1.0], [1.0]], [0, 0, 0], "does not hold the rows of this site"),
        ([[2.0]], [1], "does not hold the rows of this site"),
        ([[1.0], [1.0], [2.0]], [0, 0, 0], "no row of another site"),
    ],
)
def test_find_own_rows_changed_pool_refused(rows, label, words):
    pool = make_table([[1.0], [2.0], [1.0]], [0, 0, 0])
    with pytest.raises(BadInput, match=words):
        find_own_rows(pool, make_table(rows, label))


def make_statement(signed_roll: Any, own: str, **changes: Any) -> dict[str, Any]:
    return {
        "dataset": "ward",
        "session": "0001",
        "roll": signed_roll.digest,
        "manifest": own,
        "pool": POOL,
        "outcome": "PASS",
        "approvals": 0,
        "broken": [],
        "figures": [make_figure(0.05)],
        "errors": [],
        "densities": [],
        "policy": "p",
        "code": "c",
        **changes,
    }


def make_figure(value: float) -> dict[str, Any]:
    shared = {"kind": "privacy", "better": "down", "low": 0.0, "baseline": 0.01}
    return {"name": "record_linkage.rate", "value": value, "high": value, "worst": value, **shared}


def send_verdicts(
    exchanged: Exchanged, context: ReleaseContext, signer: str | None = None, **changes: Any
) -> list[SitePart]:
    """Send the verdicts of all sites; the changes are those of the north's."""
    for site in exchanged.parties.sites:
        exchanged.send_rows(site)
    centre = exchanged.open(CENTRE)
    parts = collect_parts(context, centre)
    for part in parts:
        mine = part.name == "north"
        statement = make_statement(
            centre.session.roll, part.manifest_digest, **(changes if mine else {})
        )
        key = exchanged.parties.keys[signer if mine and signer else part.name]
        signature = sign_statement(SITE_VERDICT, statement, key)
        payload = SiteVerdict(
            statement=statement, public=signature.public, ed25519=signature.ed25519
        )
        exchanged.sessions[part.name].send(CENTRE, "verdict", lambda payload=payload: payload)
    return parts


def judge(exchanged: Exchanged, context: ReleaseContext, parts: list[SitePart]) -> Any:
    centre = exchanged.open(CENTRE)
    collect_parts(context, centre)  # goes on to the messages that follow
    return collect_verdicts(context, centre, parts, POOL)


FIGURE = make_figure(0.05)


def make_densities(category: str) -> dict[str, Any]:
    return {"category": category, "plug_in": 0.3, "held_out": 0.1, "mixture": 0.05}


BAD_VERDICTS: dict[str, tuple[dict[str, Any], str]] = {
    "another pool": ({"pool": "0" * 64}, "is not about this pool"),
    "another roll": ({"roll": "0" * 64}, "is not about this pool"),
    "rows of another site": ({"manifest": "0" * 64}, "is not about this pool"),
    "another release": ({"session": "0002"}, "is not about this pool"),
    "signed by another site": ({"signer": "south"}, "is not signed by that site"),
    "approvals below zero": ({"approvals": -1}, "does not have the form of a verdict"),
    "no outcome": ({"outcome": "FINE"}, "does not have the form of a verdict"),
    "a record": ({"records": [[1.0]]}, "does not have the form of a verdict"),
    "not a figure": ({"figures": [{"name": "x"}]}, "does not have the form of a verdict"),
    "a figure of no metric": (
        {"figures": [{**FIGURE, "name": "record_linkage.luck"}]},
        "does not have the form of a verdict",
    ),
    # The least favourable figure of all sites would be the most favourable one.
    "a figure turned round": (
        {"figures": [{**FIGURE, "better": "up"}]},
        "does not have the form of a verdict",
    ),
    "more errors than rows": ({"errors": [1.5]}, "does not have the form of a verdict"),
    "densities of other classes": (
        {"densities": [make_densities("calm"), make_densities("north")]},
        "has densities of other classes",
    ),
}


@pytest.mark.extended
@pytest.mark.parametrize("case", BAD_VERDICTS)
def test_collect_verdicts_bad_one_refused(exchanged: Exchanged, context: ReleaseContext, case: str):
    changes, words = BAD_VERDICTS[case]
    parts = send_verdicts(exchanged, context, **changes)
    with pytest.raises(BadInput, match=f"The verdict of 'north' {words}"):
        judge(exchanged, context, parts)


@pytest.mark.extended
@pytest.mark.parametrize(
    ("outcome", "approvals", "expected"),
    [
        ("PASS", 0, "PASS"),
        ("REVIEW", 0, "FAIL"),
        ("REVIEW", 1, "PASS"),
        ("FAIL", 0, "FAIL"),
        ("FAIL", 1, "FAIL"),
    ],
)
def test_pool_verdict_passes_only_if_every_site_allows_it(
    exchanged: Exchanged, context: ReleaseContext, outcome: str, approvals: int, expected: str
):
    changes: dict[str, Any] = {
        "outcome": outcome,
        "approvals": approvals,
        "broken": ["record_linkage.rate"],
    }
    parts = send_verdicts(exchanged, context, figures=[make_figure(0.1)], **changes)
    sites = judge(exchanged, context, parts)
    run: Any = replace_run()
    verdict = reach_pool_verdict(context, run, sites, POOL)
    assert verdict.outcome == expected and len(verdict.findings) == 3
    assert not any(site in each.check for each in verdict.findings for site in ("north", "east"))
    (score,) = merge_figures(sites, 90, 0.1).scores
    assert (score.name, score.value) == ("record_linkage.rate", 0.1)  # the least favourable


def replace_run() -> Run:
    from datetime import UTC, datetime

    from warehouse.stages import Stage

    return Run("ward-0001", "ward", 1, "s", "f", "c", Stage.AUDITED, 1, None, datetime.now(UTC))


def test_models_of_more_sites_are_measured_on_test_rows(
    exchanged: Exchanged, context: ReleaseContext, tmp_path: Path
):
    for site in exchanged.parties.sites:
        exchanged.send_rows(site)
    parts = collect(exchanged, context)
    # Two separate classes: x is below 0.4 for the first and above 0.6 for the second.
    rng = np.random.default_rng(3)
    for k, part in enumerate(parts):
        label = part.table.label
        Y = np.column_stack([0.2 + 0.6 * label + 0.1 * rng.standard_normal(30), rng.random(30)])
        parts[k] = replace(part, table=ReleasedTable(Y, label, ""))
    models = train_models(parts)
    assert [model.sites for model in models] == [1, 2, 3]
    lines = [f"{0.2 + 0.6 * (i % 2)},0.5,{CLASSES[i % 2]}" for i in range(40)]
    lines += ["0.2,0.5,tense", "0.8,0.5,calm"]
    path = tmp_path / "test.csv"
    path.write_text("\n".join(["x,y,mood", *lines]) + "\n")
    assert measure_model_errors(str(path), context, models, 3) == [0.05, 0.05, 0.05]  # 2 of 42
    found = predict(models[0], np.array([[0.1, 0.5], [0.9, 0.5]]))
    assert found.tolist() == [0, 1]
    with pytest.raises(BadInput, match="other classifiers than one per site"):
        measure_model_errors(str(path), context, [*models, models[0]], 3)
    wide = models[0].model_copy(update={"means": [[0.0], [1.0]]})
    with pytest.raises(BadInput, match="a classifier of other columns"):
        predict(wide, np.zeros((1, 2)))
    far = models[0].model_copy(update={"means": [[1e300, 0.5], [0.5, 0.5]]})
    assert predict(far, np.array([[0.1, 0.5]])).tolist() == [1]


@pytest.mark.parametrize(
    "text", ["", "x,y\n1,2\n", "x,y,mood\n1,2,angry\n", "x,y,mood\n1,2,calm\n"]
)
def test_test_rows_bad_file_refused(context: ReleaseContext, tmp_path: Path, text: str):
    path = tmp_path / "test.csv"
    path.write_text(text)
    with pytest.raises(BadInput, match=r"test\.csv"):
        measure_model_errors(str(path), context, [], 0)


def test_parse_table_returns_codes_and_digest(context: ReleaseContext):
    data = make_file()
    table = parse_table("north", encode_bytes(data), ("x", "y"), context)
    assert table.digest == hashlib.sha256(data).hexdigest()
    assert table.label[:4].tolist() == [0, 1, 0, 1]
