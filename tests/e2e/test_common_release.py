"""Complete common releases: each party in processes of its own, with a home, keys and a table.

Every method that sites can release with is published once. One release is killed thirty times, one
loses its shared folder and then has no room in it, one waits for reviewers.
"""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from ppdm_core.model.statement import SITE_VERDICT, Signature, is_signed
from tests.support.canaries import Canaries, list_texts, read_draws
from tests.support.forkserver import Result
from tests.support.party_processes import PartyProcesses
from tests.support.shared_trouble import FULL, GONE, SharedTrouble
from tests.support.small_disk import mount_disk
from tests.support.small_release import CLASSES, Small
from warehouse.database import Store
from warehouse.home import Home
from warehouse.messages.envelope import bind, make_suite, parse_message
from warehouse.messages.payloads import KINDS, decode_bytes
from warehouse.messages.roll import CENTRE
from warehouse.publishing.manifest import digest_text, verify

pytestmark = pytest.mark.slow
Maker = Callable[..., Small]
THREE = {"east": 480, "north": 480, "south": 480}
TWO = {"east": 480, "north": 480}
KILLS = 30
FIGURE_DIGITS = 3  # of a rounded figure in a message, at most
DISK = 8 * 2**20  # bytes, for all messages
REVIEWER = 1  # a user that every system has
# Between a site and the centre, in turn; the last ones are those of every method.
CONVERSATIONS = {
    "pca_laplace": ("moments", "basis", "scores", "fit"),
    "kde_resample": (),
    "dct_fuzzy": ("bounds", "selection"),
}
ROUNDS = {"pca_laplace": ("moments", "scores"), "kde_resample": (), "dct_fuzzy": ("bounds",)}
ENDINGS = ("rows", "pool", "verdict", "end")
COLUMN_KINDS = {"roster", "blinded", "coefficients"}  # of parties with other columns


@dataclass
class Finished:
    """A common release that ended."""

    method: str
    parties: PartyProcesses
    ended: dict[str, Result]
    reviews: list[str]  # sites that waited for reviewers, once for each time
    trouble: SharedTrouble | None = None

    @property
    def published(self) -> Path:
        return self.parties.find_published()


@pytest.fixture(scope="module", params=["pca_laplace", "kde_resample", "dct_fuzzy"])
def finished(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, release_in: Maker
) -> Iterator[Finished]:
    """A common release: one is killed, one has a shared folder in trouble, one is reviewed."""
    method = request.param
    if method == "dct_fuzzy" and os.geteuid() != 0:
        pytest.skip("needs root, to act for a reviewer")
    folder = tmp_path_factory.mktemp(method)
    sites = THREE if method == "pca_laplace" else TWO
    has_trouble = method == "kde_resample"
    tests = 60 if has_trouble else 0
    disk = mount_disk(folder / "disk", DISK) if has_trouble else nullcontext(folder)
    with disk as place:
        shared = place / "shared"
        parties = PartyProcesses(folder / "x", release_in, method, sites, tests, shared)
        parties.join()
        trouble = SharedTrouble(shared, len(sites) + 1, len(sites)) if has_trouble else None
        reviews: list[str] = []

        def approve(site: str) -> None:
            reviews.append(site)
            found = parties.decide(site, REVIEWER, "--approve")
            assert found.exit_code == 0, found

        ended = parties.run_all(KILLS if method == "pca_laplace" else 0, approve, trouble)
        yield Finished(method, parties, ended, reviews, trouble)


def test_common_release_shared_folder_gone_or_full_continues(finished: Finished):
    """Every party that needs the folder ends with exit code 5; the same command completes."""
    if finished.trouble is None:
        pytest.skip("its shared folder has no trouble")
    trouble, sites = finished.trouble, finished.parties.sizes
    assert trouble.said[GONE].keys() == finished.parties.parties.keys()
    assert all("The shared folder" in text for text in trouble.said[GONE].values())
    assert all("is not there" in text for text in trouble.said[GONE].values())
    assert trouble.said[FULL].keys() == sites.keys()
    assert all("the disk is full" in text for text in trouble.said[FULL].values())
    assert trouble.left == []  # no part of a message remains
    assert {each.exit_code for each in finished.ended.values()} == {0}


def read_rows(folder: Path) -> np.ndarray:
    table = pq.read_table(folder / "data.parquet")
    columns = [name for name in table.column_names if name != "mood"]
    rows = np.column_stack([table.column(name).to_numpy() for name in columns])
    return rows[np.lexsort(rows.T)]


def test_common_release_is_published_with_exactly_the_rows_of_all_sites(finished: Finished):
    assert {name: each.exit_code for name, each in finished.ended.items()} == dict.fromkeys(
        finished.parties.parties, 0
    ), finished.ended
    assert json.loads(finished.ended[CENTRE].stdout)["outcome"] == "published"
    parts = [read_rows(finished.parties.find_published(site)) for site in finished.parties.sizes]
    expected = np.concatenate(parts)
    assert np.array_equal(read_rows(finished.published), expected[np.lexsort(expected.T)])
    assert verify(finished.published).manifest["rows"] == len(expected)
    if finished.method == "pca_laplace":
        assert finished.parties.deaths >= KILLS


def test_common_release_manifest_names_each_sites_manifest_and_signed_verdict(finished: Finished):
    manifest = verify(finished.published).manifest
    sites = finished.parties.sizes
    assert manifest["sites"]["count"] == len(sites)
    for entry, site in zip(manifest["sites"]["verdicts"], sites, strict=True):
        own = finished.parties.find_published(site) / "manifest.json"
        assert entry["manifest"] == digest_text(own.read_text())
        signed = entry["signed"]
        statement, signature = signed["statement"], Signature(signed["public"], signed["ed25519"])
        assert is_signed(SITE_VERDICT, statement, signature)
        assert signature.key == finished.parties.prints[site]
        assert statement["pool"] == manifest["files"]["data.parquet"]["sha256"]
        judged = {figure["name"] for figure in statement["figures"]}
        assert "colluding_sites.rate" in judged
        has_moments = finished.method == "pca_laplace"
        assert ("pooled_moments.breach_rate" in judged) == has_moments
        has_density = finished.method == "kde_resample"
        named = [each["category"] for each in statement["densities"]]
        assert named == (list(CLASSES) if has_density else [])
        is_review = site in finished.reviews
        assert statement["outcome"] == ("REVIEW" if is_review else "PASS")
        assert statement["approvals"] == int(is_review)
    text = json.dumps(manifest)
    assert not any(re.search(rf"\b{site}\b", text) for site in sites)  # recipients read no names


def test_common_release_pool_in_review_waits_for_the_reviewers_of_each_site(finished: Finished):
    """A site in review waits twice: for its own rows, and for the pool."""
    assert bool(finished.reviews) == (finished.method == "dct_fuzzy")
    assert all(finished.reviews.count(site) == 2 for site in finished.reviews)


def test_common_release_report_has_a_section_per_site_for_the_centre_alone(finished: Finished):
    from tasks.publish.report.build import build_view
    from tasks.publish.report.facts import read_report_facts
    from tasks.publish.report.render import render_report

    store = Store(Home(finished.parties.parties[CENTRE].home))
    page = render_report(build_view(read_report_facts(store, "ward-0001"), "steward"))
    sites = finished.parties.sizes
    assert all(f"<h3>{site} " in page for site in sites)
    public = (finished.published / "report.html").read_text()
    assert f"{len(sites)} sites released together" in public
    assert not any(re.search(rf"\b{site}\b", public) for site in sites)
    assert ("error on test rows" in public) == (finished.method == "kde_resample")


def list_expected_files(finished: Finished) -> dict[str, str]:
    """Return the kind of every file of the release by its name."""
    first, *others = sites = sorted(finished.parties.sizes)
    found = {"roll.json": "roll"}
    found |= {f"{party}.hello.json": "hello" for party in (CENTRE, *sites)}
    for site in sites:
        for number, kind in enumerate([*CONVERSATIONS[finished.method], *ENDINGS]):
            is_question = number % 2 == 0
            pair = f"{site}-{CENTRE}" if is_question else f"{CENTRE}-{site}"
            found[f"{number:03d}-{pair}.msg"] = kind
    if finished.method == "dct_fuzzy":
        found |= {f"000-{first}-{other}.msg": "order" for other in others}
    return found


def open_messages(finished: Finished) -> list[tuple[str, bytes]]:
    """Return name and decrypted content of every file that was shared, with the tables inside."""
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    found = []
    for path in sorted(path for path in finished.parties.shared.rglob("*") if path.is_file()):
        if path.suffix != ".msg":
            found.append((path.name, path.read_bytes()))
            continue
        header, body, _ = parse_message(path.name, path.read_bytes())
        key = X25519PrivateKey.from_private_bytes(finished.parties.keys[header.receiver])
        text = make_suite().decrypt(decode_bytes(body), key, info=bind(header))
        found.append((path.name, text))
        if data := json.loads(text).get("data"):
            table = pq.read_table(io.BytesIO(decode_bytes(data)))
            found.append((path.name, json.dumps(table.to_pydict()).encode()))
    return found


def drop_rounded(numbers: frozenset[float]) -> frozenset[float]:
    """Return the numbers that have more digits than a rounded figure."""
    return frozenset(each for each in numbers if float(f"{each:.{FIGURE_DIGITS}g}") != each)


def list_canaries(finished: Finished, work: Path) -> dict[str, Canaries]:
    """Return by party what must not leave it."""
    found = {}
    for name, party in finished.parties.parties.items():
        columns = {} if name == CENTRE else {"ids": "person", "notes": "notes"}
        numbers: dict[str, frozenset[float]] = {}
        # The noise lies on a grid: some numbers of a draw are also in the pool by chance, or are
        # one of the rounded figures of a message.
        pool = frozenset(read_rows(finished.published).ravel().tolist())
        # Whole numbers are everywhere, and draws without noise are the release.
        if name != CENTRE and finished.method != "dct_fuzzy":
            X, _ = finished.parties.tables[name]
            numbers = {"records": frozenset(X.ravel().tolist())}
            draws = read_draws(party, work / name)
            numbers |= {kind: drop_rounded(each - pool) for kind, each in draws.items()}
        found[name] = Canaries(list_texts(party, columns), numbers)
    return found


def test_common_release_exactly_the_listed_files_cross(finished: Finished):
    expected = list_expected_files(finished)
    folder = finished.parties.shared / "ward"
    files = {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()}
    assert files == {Path("session.json"), *(Path("0001") / name for name in expected)}
    kinds = {
        name: parse_message(name, (folder / "0001" / name).read_bytes())[0].kind
        for name in expected
        if name.endswith(".msg")
    }
    assert kinds == {name: kind for name, kind in expected.items() if name.endswith(".msg")}
    every = {kind for kinds in CONVERSATIONS.values() for kind in kinds} | {"order", *ENDINGS}
    assert every | COLUMN_KINDS == KINDS.keys()


def test_common_release_nothing_of_a_site_is_in_a_message(finished: Finished, tmp_path: Path):
    """Ids, notes, numbers, draws of the audit and keys are canaries in everything that crosses."""
    contents = [content for _, content in open_messages(finished)]
    for name, canaries in list_canaries(finished, tmp_path).items():
        assert canaries.find(contents) == set(), name
        # The search finds a single canary of each kind.
        for kind, texts in canaries.texts.items():
            for text in {texts[0], texts[-1]}:
                assert canaries.find([*contents, b'{"added":"' + text + b'"}']) == {kind}
        for kind, numbers in canaries.numbers.items():
            added = json.dumps({"added": [min(numbers)]}).encode()
            assert kind in canaries.find([*contents, added])


def test_common_release_ledgers_stay_with_the_sites(finished: Finished):
    for name, party in finished.parties.parties.items():
        with Store(Home(party.home)).transaction("tests") as db:
            ((entries,),) = db.execute("select count(*) from ledger.entry").fetchall()
            ((charged,),) = db.execute("select count(*) from ledger.charge").fetchall()
        assert entries == 1 and (charged > 0) == (name != CENTRE)


def test_common_release_rounds_are_tasks_in_prefect(finished: Finished, prefect_api: str):
    """Each flow has one task for each round; other tests use the same server."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import (
        FlowFilter,
        FlowFilterName,
        FlowRunFilter,
        FlowRunFilterId,
    )

    role_tasks: dict[str, set[str]] = {"site": set(), CENTRE: set()}
    with get_client(sync_client=True) as client:
        for role, names in role_tasks.items():
            named = FlowFilter(name=FlowFilterName(any_=[role]))
            runs: list[Any] = client.read_flow_runs(flow_filter=named, limit=200)
            for run in runs:
                if run.parameters["file"]["sanitizer"]["method"] != finished.method:
                    continue
                own = FlowRunFilter(id=FlowRunFilterId(any_=[run.id]))
                tasks: list[Any] = client.read_task_runs(flow_run_filter=own, limit=200)
                names |= {re.sub(r"-\w+$", "", each.name) for each in tasks}
    rounds = set(ROUNDS[finished.method])
    of_site = {"exchange the roll", "send rows", "attack the pool", "end part"}
    of_centre = {"exchange the roll", "collect rows", "pool the rows", "collect verdicts"}
    assert of_site | {f"agree on a fit: {each}" for each in rounds} <= role_tasks["site"]
    assert of_centre | {f"lead the fit: {each}" for each in rounds} <= role_tasks[CENTRE]
    other = {each for method in ROUNDS for each in ROUNDS[method]} - rounds
    assert not any(name.endswith(f": {each}") for name in role_tasks["site"] for each in other)
