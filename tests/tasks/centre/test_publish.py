"""The centre pools, judges by the verdicts of the sites, and publishes or refuses."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from prefect.states import Completed

from ppdm.cli.sites import build_run_result
from ppdm_core.model.errors import Refused
from ppdm_core.model.manifest import sign
from ppdm_core.model.release import PublicParameters
from ppdm_core.model.statement import SITE_VERDICT, Signature, is_signed, sign_statement
from tasks.publish.report.build import build_view
from tasks.publish.report.facts import read_report_facts
from tasks.publish.report.render import render_report
from tasks.sites.exchange import StillWaiting
from tests.support.common_release import CommonRelease
from tests.support.small_release import CLASSES, FEATURES
from warehouse import checkpoints
from warehouse.integrity.home_key import home_key
from warehouse.json_codec import to_json
from warehouse.messages.payloads import End, Pool, SiteRows, SiteVerdict
from warehouse.messages.roll import CENTRE
from warehouse.publishing.manifest import digest_text, verify
from warehouse.stages import Stage

N = 40


def make_rows(release: CommonRelease, site: str, key: Any) -> SiteRows:
    """Return rows of a site with a manifest, as its own release would have published them."""
    rng = np.random.default_rng(sorted(release.sites).index(site))
    columns = {name: pa.array(rng.uniform(0, 10, N)) for name in FEATURES}
    out = io.BytesIO()
    pq.write_table(pa.table({**columns, "mood": pa.array([CLASSES[i % 2] for i in range(N)])}), out)
    public = PublicParameters("kde_resample", "original", FEATURES, np.zeros(4), np.eye(4))
    manifest = {
        "dataset": "ward",
        "release_id": "ward-0001",
        "method": "kde_resample",
        "parameters": release.contexts[CENTRE].parameters,
        "public": to_json(public),
        "features": list(FEATURES),
        "scaling": {"kind": "minmax", "offset": [0.0] * 4, "unit": [10.0] * 4},
        "label": "mood",
        "noise": {"scheme": "ppdm-noise-1", "block": 16384},
        "guarantee": {
            "kind": "empirical",
            "ln_component": "inf",
            "ln_attribute": "inf",
            "ln_record": "inf",
            "assumptions": ["No bound."],
            "without_bound": ["kde_resample"],
        },
        "verdict": {"outcome": "PASS"},
        "rows": N,
        "files": {"data.parquet": {"sha256": hashlib.sha256(out.getvalue()).hexdigest()}},
    }
    data = base64.b64encode(out.getvalue()).decode()
    return SiteRows(outcome="PASS", manifest=sign(manifest, key).decode(), data=data)


def make_verdict(session: Any, rows: SiteRows, pool: Pool, outcome: str) -> SiteVerdict:
    figure = {
        "name": "record_linkage.rate",
        "kind": "privacy",
        "better": "down",
        "value": 0.05,
        "low": 0.01,
        "high": 0.1,
        "baseline": 0.02,
        "worst": 0.05,
    }
    statement = {
        "dataset": "ward",
        "session": "0001",
        "roll": session.roll.digest,
        "manifest": digest_text(rows.manifest),
        "pool": hashlib.sha256(base64.b64decode(pool.data)).hexdigest(),
        "outcome": outcome,
        "approvals": 0,
        "broken": [] if outcome == "PASS" else ["record_linkage.rate"],
        "figures": [figure],
        "errors": [0.1, 0.05, 0.05],
        "densities": [
            {"category": each, "plug_in": 0.3, "held_out": 0.1, "mixture": 0.05} for each in CLASSES
        ],
        "policy": "p",
        "code": "c",
    }
    found = sign_statement(SITE_VERDICT, statement, session.signing)
    return SiteVerdict(statement=statement, public=found.public, ed25519=found.ed25519)


def run_centre(release: CommonRelease) -> Stage | None:
    try:
        return release.run_centre()
    except StillWaiting:
        return None


def exchange_all(release: CommonRelease, outcome: str, ends: bool = True) -> Stage | None:
    """Let all sites send rows and verdicts; the verdict of the north is ``outcome``.

    The centre then ends the release, unless it is left to the test.
    """
    for name in (CENTRE, *release.sites, CENTRE):
        try:
            release.enter(name)
        except StillWaiting:
            continue
    for site in release.sites:
        session = release.enter(site).session
        rows = make_rows(release, site, session.signing)
        session.send(CENTRE, "rows", lambda rows=rows: rows)
    assert run_centre(release) is None  # it waits for the verdicts
    for site in release.sites:
        exchange = release.enter(site)
        session = exchange.session
        rows = make_rows(release, site, session.signing)
        session.send(CENTRE, "rows", lambda: pytest.fail("sent twice"))
        pool = exchange.receive(CENTRE, "pool", Pool)
        assert [model.sites for model in pool.models] == [1, 2, 3]
        verdict = make_verdict(session, rows, pool, outcome if site == "north" else "PASS")
        session.send(CENTRE, "verdict", lambda verdict=verdict: verdict)
    return run_centre(release) if ends else None


class Killed(BaseException):
    """The process dies here."""


@pytest.fixture
def kill(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, int], None]:
    """Let the process die when it comes to a checkpoint for the n-th time."""

    def prepare(point: str, count: int) -> None:
        met = 0

        def listen(name: str) -> None:
            nonlocal met
            met += name == point
            if name == point and met == count:
                raise Killed

        monkeypatch.setattr(checkpoints, "LISTENERS", [listen])

    return prepare


def test_publish_pool_centre_killed_at_the_end_sends_it_to_all_sites(
    tmp_path: Path, kill: Callable[[str, int], None]
):
    release = CommonRelease(tmp_path / "x")
    exchange_all(release, "PASS", ends=False)
    folder = Path(release.contexts[CENTRE].home) / "private" / "exchanges" / "ward" / "0001"
    sent: dict[str, bytes] = {}
    sites = len(release.sites)
    # The pool is sent to every site again, and then the end.
    points = [("message sent", sites + k) for k in range(1, sites + 1)]
    for point, count in [*points, ("end recorded", 1)]:
        kill(point, count)
        with pytest.raises(Killed):
            release.run_centre()
        assert (folder / "exchange.key").exists()
        assert (folder / "ended.json").exists() == (point == "end recorded")
        for path in release.shared.rglob("*.msg"):
            raw = path.read_bytes()
            assert sent.setdefault(path.name, raw) == raw
    kill("nothing", 1)
    assert len([name for name in sent if name.startswith("003-centre-")]) == sites
    assert verify(find_folder(release) / "0001").manifest["rows"] == 3 * N
    with pytest.raises(StillWaiting):  # for the hellos of the next release
        release.enter(CENTRE)
    assert not (folder / "exchange.key").exists()


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> CommonRelease:
    release = CommonRelease(tmp_path_factory.mktemp("centre") / "x")
    assert exchange_all(release, "PASS") == Stage.PUBLISHED
    return release


def find_folder(release: CommonRelease) -> Path:
    return Path(release.contexts[CENTRE].home) / "published" / "ward"


@pytest.mark.extended
def test_publish_pool_all_sites_pass_folder_is_complete(published: CommonRelease):
    found = verify(find_folder(published) / "0001")
    assert found.manifest["rows"] == 3 * N
    table = pq.read_table(find_folder(published) / "latest" / "data.parquet")
    assert table.column_names == [*FEATURES, "mood"]
    assert found.manifest["guarantee"]["kind"] == "empirical"


def test_publish_pool_manifest_names_manifests_and_signed_verdicts(published: CommonRelease):
    manifest = verify(find_folder(published) / "0001").manifest
    assert manifest["sites"]["count"] == 3
    for entry, site in zip(manifest["sites"]["verdicts"], published.sites, strict=True):
        signed = entry["signed"]
        signature = Signature(signed["public"], signed["ed25519"])
        assert is_signed(SITE_VERDICT, signed["statement"], signature)
        assert signature.key == published.pins[site]
        assert signed["statement"]["manifest"] == entry["manifest"]
        assert signed["statement"]["pool"] == manifest["files"]["data.parquet"]["sha256"]
    assert not any(re.search(rf"\b{site}\b", json.dumps(manifest)) for site in published.sites)


def test_verify_pool_with_a_verdict_on_another_pool_refused(
    published: CommonRelease, tmp_path: Path
):
    """The centre signs a manifest with another outcome than a site did."""
    folder = shutil.copytree(find_folder(published) / "0001", tmp_path / "0001")
    manifest = verify(folder).manifest
    body = {name: each for name, each in manifest.items() if name not in ("digest", "signature")}
    with published.contexts[CENTRE].open_store().transaction("tests") as db:
        key = home_key(db).signing()
    (folder / "manifest.json").write_bytes(sign(body, key))
    verify(folder, key.public_key())
    body["sites"]["verdicts"][1]["signed"]["statement"]["outcome"] = "FAIL"
    (folder / "manifest.json").write_bytes(sign(body, key))
    with pytest.raises(Refused, match="a verdict that its site did not sign for this pool"):
        verify(folder, key.public_key())


def test_publish_pool_report_names_sites_for_the_centre_alone(published: CommonRelease):
    store = published.contexts[CENTRE].open_store()
    page = render_report(build_view(read_report_facts(store, "ward-0001"), "steward"))
    assert all(f"<h3>{site} " in page for site in published.sites)
    public = (find_folder(published) / "0001" / "report.html").read_text()
    assert "3 sites released together" in public and "sites in the pool" in public
    for shown in (page, public):  # the centre has charged no record
        assert "in its own ledger" in shown and "ll releases so far" not in shown
    assert "ledger" not in verify(find_folder(published) / "0001").manifest
    assert not any(re.search(rf"\b{site}\b", public) for site in published.sites)


def test_publish_pool_report_shows_errors_of_densities_and_classifiers(published: CommonRelease):
    store = published.contexts[CENTRE].open_store()
    page = render_report(build_view(read_report_facts(store, "ward-0001"), "steward"))
    public = (find_folder(published) / "0001" / "report.html").read_text()
    for name in CLASSES:
        row = [name, "at most 0.3", "at least 0.1", "at least 0.05"]
        assert (find_rows(page).count(row), find_rows(public).count(row)) == (4, 1)
    assert (find_rows(page).count(["3", "at most 5.0%"]), "tested by all sites" in public) == (
        4,
        True,
    )


def find_rows(page: str) -> list[list[str]]:
    """Return the cells of all rows of the tables of a report."""
    rows = re.findall(r"<tr>(.*?)</tr>", page, re.DOTALL)
    return [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in rows]


def test_run_result_of_the_centre_says_where_the_pool_is(published: CommonRelease):
    context, state = (
        published.contexts[CENTRE],
        Completed(data=str(Stage.PUBLISHED), message="Done."),
    )
    centre = build_run_result(context, state, is_centre=True)
    assert "PUBLISHED  ward-0001" in centre.text and "To check it: ppdm verify" in centre.text
    assert centre.payload["outcome"] == "published"
    assert centre.text.splitlines()[-1] == "Done."  # which the examples print of each party
    assert build_run_result(context, state, is_centre=False).text == "Done."


def test_publish_pool_sites_learn_the_end_and_the_key_is_forgotten(published: CommonRelease):
    site = published.enter("east")
    site.session.send(CENTRE, "rows", lambda: pytest.fail("sent twice"))
    site.receive(CENTRE, "pool", Pool)
    site.session.send(CENTRE, "verdict", lambda: pytest.fail("sent twice"))
    end = site.receive(CENTRE, "end", End)
    assert end.outcome == "published"
    home = Path(published.contexts[CENTRE].home)
    assert not (home / "private" / "exchanges" / "ward" / "0001" / "exchange.key").exists()


@pytest.mark.slow
@pytest.mark.parametrize("outcome", ["FAIL", "REVIEW"])
def test_publish_pool_one_site_does_not_pass_nothing_is_published(tmp_path: Path, outcome: str):
    release = CommonRelease(tmp_path / "x")
    assert exchange_all(release, outcome) == Stage.REFUSED
    assert not find_folder(release).exists() or not list(find_folder(release).iterdir())
