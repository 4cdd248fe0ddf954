"""A complete common release of three sites: published, signed, and nothing but messages crosses.

All parties run in one process without Prefect, each with its own home, and begin again from their
first step whenever a message is missing.
"""

from __future__ import annotations

import hashlib
import io
import json
import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from ppdm_core.model.statement import SITE_VERDICT, Signature, is_signed
from tests.support.common_release import CommonRelease, make_people
from warehouse import checkpoints
from warehouse.messages.envelope import bind, make_suite, parse_message
from warehouse.messages.payloads import KINDS, decode_bytes
from warehouse.messages.roll import CENTRE
from warehouse.publishing.manifest import digest_text, verify
from warehouse.stages import Stage

LONG = {"attack asked", "shadows drawn", "attacks run"}
SITES = {"east": 480, "north": 480, "south": 480}


class Killed(BaseException):
    """A process that is killed at a checkpoint."""


class Killer:
    """Kills a party at random checkpoints, a limited number of times."""

    def __init__(self, times: int) -> None:
        self.times, self.rng, self.points = times, random.Random(3), set[str]()

    def __call__(self, point: str) -> None:
        is_long = point in LONG  # tests/e2e/test_kill.py kills a release there
        if self.times and not is_long and self.rng.random() < 0.3:
            self.times -= 1
            self.points.add(point)
            raise Killed(point)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A common release that ended; keys of the session are kept to look into its messages."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tasks.notify.prefect_artifacts.ProgressBar.show", lambda self, share: None)
        release = CommonRelease(tmp_path_factory.mktemp("sites") / "x", "pca_laplace", SITES)
        killer = Killer(30)
        checkpoints.LISTENERS.append(killer)
        kept: dict[str, bytes] = {}

        def keep_keys() -> None:
            for name in release.contexts:
                path = Path(release.contexts[name].home) / "private" / "exchanges" / "ward"
                key = path / "0001" / "exchange.key"
                if key.exists():
                    kept[name] = bytes.fromhex(key.read_text().strip())

        def run(name: str) -> Any:
            while True:
                try:
                    return release.run_centre() if name == CENTRE else release.run_site(name)
                except Killed:
                    continue
                finally:
                    keep_keys()

        try:
            ended = release.run_all(run)
        finally:
            checkpoints.LISTENERS.remove(killer)
    return release, ended, kept, killer


def find_published(release: CommonRelease) -> Path:
    return Path(release.contexts[CENTRE].home) / "published" / "ward" / "0001"


@pytest.mark.slow
def test_common_release_killed_thirty_times_is_published(finished: Any):
    release, ended, _, killer = finished
    assert ended[CENTRE] == Stage.PUBLISHED, ended
    assert all(ended[site] is None for site in SITES), ended
    assert killer.times == 0 and len(killer.points) > 5
    found = verify(find_published(release))
    assert found.manifest["rows"] == sum(len(read_part(release, site)) for site in SITES)
    assert sorted(path.name for path in find_published(release).parent.iterdir()) == [
        "0001",
        "latest",
    ]


def read_part(release: CommonRelease, site: str) -> np.ndarray:
    folder = Path(release.contexts[site].home) / "published" / "ward" / "latest"
    return pq.read_table(folder / "data.parquet").column("component_1").to_numpy()


@pytest.mark.slow
def test_common_release_pool_holds_exactly_the_rows_of_all_sites(finished: Any):
    release = finished[0]
    pool = pq.read_table(find_published(release) / "data.parquet").column("component_1").to_numpy()
    parts = np.concatenate([read_part(release, site) for site in SITES])
    assert np.array_equal(np.sort(pool), np.sort(parts))


@pytest.mark.slow
def test_common_release_manifest_names_each_sites_manifest_and_signed_verdict(finished: Any):
    release = finished[0]
    manifest = verify(find_published(release)).manifest
    sites = manifest["sites"]
    assert sites["count"] == 3
    for entry, site in zip(sites["verdicts"], SITES, strict=True):
        own = Path(release.contexts[site].home) / "published" / "ward" / "latest" / "manifest.json"
        assert entry["manifest"] == digest_text(own.read_text())
        assert entry["outcome"] == "PASS"
        signed = entry["signed"]
        signature = Signature(signed["public"], signed["ed25519"])
        assert is_signed(SITE_VERDICT, signed["statement"], signature)
        assert signature.key == release.pins[site]
        assert signed["statement"]["pool"] == manifest["files"]["data.parquet"]["sha256"]
        names = {figure["name"] for figure in signed["statement"]["figures"]}
        assert "colluding_sites.rate" in names
    assert not any(
        re.search(rf"\b{site}\b", json.dumps(manifest)) for site in SITES
    )  # recipients read no names


@pytest.mark.slow
def test_common_release_report_has_a_section_per_site_for_the_centre_alone(finished: Any):
    from tasks.publish.report.build import build_view
    from tasks.publish.report.facts import read_report_facts
    from tasks.publish.report.render import render_report

    release = finished[0]
    store = release.contexts[CENTRE].open_store()
    page = render_report(build_view(read_report_facts(store, "ward-0001"), "steward"))
    assert all(f"<h3>{site} " in page for site in SITES)
    public = (find_published(release) / "report.html").read_text()
    assert "3 sites released together" in public
    assert not any(re.search(rf"\b{site}\b", public) for site in SITES)


def open_all(release: CommonRelease, keys: dict[str, bytes]) -> list[tuple[str, bytes]]:
    """Return kind and decrypted content of every message, with the tables inside."""
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    found = []
    for path in sorted((release.shared / "ward" / "0001").iterdir()):
        if path.suffix != ".msg":
            found.append(("public", path.read_bytes()))
            continue
        header, body, _ = parse_message(path.name, path.read_bytes())
        key = X25519PrivateKey.from_private_bytes(keys[header.receiver])
        text = make_suite().decrypt(decode_bytes(body), key, info=bind(header))
        found.append((header.kind, text))
        data = json.loads(text).get("data")
        if data:
            table = pq.read_table(io.BytesIO(decode_bytes(data)))
            found.append((header.kind, json.dumps(table.to_pydict()).encode()))
    return found


@pytest.mark.slow
def test_common_release_messages_hold_no_original_value_and_nothing_else_crosses(finished: Any):
    release, _, keys, _ = finished
    messages = open_all(release, keys)
    kinds = {kind for kind, _ in messages}
    assert kinds == {"public", *KINDS} - {"order", "bounds", "selection"}
    text = b"\n".join(content for _, content in messages)
    for number, site in enumerate(sorted(SITES)):
        X, _ = make_people(SITES[site], number)
        assert not any(f"{site}-{i:05d}".encode() in text for i in range(SITES[site]))
        assert not any(repr(value).encode() in text for value in X.ravel().tolist())
    for name, context in release.contexts.items():
        private = Path(context.home) / "private" / "keys"
        for path in private.iterdir():
            key = path.read_text().strip()
            assert key.encode() not in text and bytes.fromhex(key) not in text, name
    raw = b"".join(path.read_bytes() for path in release.shared.rglob("*") if path.is_file())
    assert hashlib.sha256(raw).digest()  # every file was read
    assert {path.suffix for path in release.shared.rglob("*") if path.is_file()} == {
        ".msg",
        ".json",
    }


@pytest.mark.slow
def test_common_release_ledgers_stay_with_the_sites(finished: Any):
    release = finished[0]
    for name, context in release.contexts.items():
        with context.open_store().transaction("tests") as db:
            ((count,),) = db.execute("select count(*) from ledger.entry").fetchall()
        assert count == 1
        with context.open_store().transaction("tests") as db:
            ((charged,),) = db.execute("select count(*) from ledger.charge").fetchall()
        assert (charged > 0) == (name != CENTRE)
