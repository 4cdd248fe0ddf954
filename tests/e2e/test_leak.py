"""After approved, refused, waiting, rehearsed, defective, rejected and killed releases, nothing
private is in anything that leaves the private folder."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from flows.config.release_file import load
from ppdm_core.model.withdrawal import NOTICE_NAME
from ppdm_core.numerics.noise import Noise
from tests.support.entries import KEY
from tests.support.history import ADDED, TOKEN, History
from tests.support.kills import Chain
from tests.support.pickled_files import find_pickles
from tests.support.small_release import FEATURES
from warehouse.database import Store
from warehouse.home import Home
from warehouse.integrity.home_key import HomeKey

SOME = 25  # rows whose cells are looked for, in addition to the one with rare values


def cells(history: History) -> list[str]:
    rows = [*history.release.rows[:SOME], ADDED]
    return [row[name] for row in rows for name in FEATURES if TOKEN not in row[name]]


def needles(history: History) -> list[bytes]:
    """Private things in every form in which they could be written; SQLite turns bytes round."""
    found = [TOKEN.encode()]
    subkeys = (Noise(KEY).subkey("audit", *each) for each in audits(history))
    for secret in (KEY, *subkeys, *home_secrets(history)):
        found += [secret, secret.hex().encode()]
    for cell in cells(history):
        scaled = float(cell) / 10
        found += [cell.encode(), f"{float(cell):.9f}".encode(), f"{scaled:.9f}".encode()]
        found += [struct.pack(form, x) for x in (float(cell), scaled) for form in ("<d", ">d")]
    return found


def home_secrets(history: History) -> list[bytes]:
    """What seals rows and signs manifests."""
    root = bytes.fromhex((history.release.private / "keys" / "home-seal.key").read_text())
    key = HomeKey(root)
    return [root, key.sealing, key.signing().private_bytes_raw()]


def audits(history: History) -> list[tuple[str, str, str]]:
    """Return what the seeds of the audits are derived from, in addition to the key."""
    with Store(Home(history.release.home)).transaction("tests") as db:
        runs = db.execute("select distinct source_digest, code_version from meta.run").fetchall()
    policy = load(history.release.file).build_policy()
    return [(source, policy.attack_settings_key, code) for source, code in runs]


def find_private(data: bytes, history: History) -> list[bytes]:
    if not history.needles:
        history.needles = needles(history)
    return [needle for needle in history.needles if needle in data]


def files_below(*folders: Path) -> Iterator[Path]:
    for folder in folders:
        assert folder.is_dir(), folder
        yield from (path for path in folder.rglob("*") if path.is_file())


def test_find_private_source_file_values_found(history: History) -> None:
    source = history.release.table.read_bytes()
    found = find_private(source, history)
    assert TOKEN.encode() in found
    assert set(cells(history)) <= {needle.decode(errors="replace") for needle in found}
    number = float(ADDED[FEATURES[0]])
    assert find_private(b"..." + struct.pack("<d", number), history)


def test_output_all_commands_nothing_private(history: History, chain: Chain) -> None:
    results = [*history.results.values(), *chain.results]
    assert len(results) > 6
    for result in results:
        assert find_private((result.stdout + result.stderr).encode(), history) == []


@pytest.mark.extended
@pytest.mark.parametrize("part", ["published", "views"])
def test_shared_folders_all_files_nothing_private(
    history: History, chain: Chain, part: str
) -> None:
    files = list(files_below(history.release.home / part, chain.release.home / part))
    assert files
    for path in files:
        assert find_private(path.read_bytes(), history) == [], path.name


def test_released_values_all_versions_nothing_private(history: History) -> None:
    originals = {float(cell) for cell in cells(history)}
    paths = list(history.release.published.rglob("data.parquet"))
    assert len(paths) >= 2
    for path in paths:
        table = pq.read_table(path)
        for name in table.column_names:
            assert originals.isdisjoint(set(table.column(name).to_pylist()))


@pytest.mark.slow
def test_withdrawal_notice_output_and_views_nothing_private(
    history: History, tmp_path: Path
) -> None:
    release = history.release.copied_to(tmp_path / "copy")
    result = release.ask("withdraw", "history-0003", "--reason", "A test.")
    assert result.exit_code == 0
    shown = [result, *(release.ask(*each) for each in (("verify", "history-0003"), ("history",)))]
    for each in shown:
        assert find_private((each.stdout + each.stderr).encode(), history) == []
    files = list(files_below(release.home / "published", release.home / "views"))
    assert release.published / "0003" / NOTICE_NAME in files
    for path in files:
        assert find_private(path.read_bytes(), history) == [], path.name


@pytest.mark.slow
def test_prefect_database_and_log_nothing_private(history: History, chain: Chain) -> None:
    """The database of the server that all these runs used, its log, and stored results."""
    prefect = Path(os.environ["PREFECT_HOME"])
    files = [*files_below(prefect), prefect.parents[1] / "private" / "server.log"]
    assert any(path.name == "prefect.db" for path in files)
    for path in files:
        assert find_private(path.read_bytes(), history) == [], path.name
    database = b"".join(path.read_bytes() for path in files if path.name.startswith("prefect.db"))
    assert history.release.name.encode() in database  # it is the right one


def test_defect_reports_all_files_nothing_private(history: History) -> None:
    reports = list(files_below(history.release.private / "defects"))
    assert reports
    for report in reports:
        assert find_private(report.read_bytes(), history) == []


def test_homes_after_all_releases_no_pickled_file(history: History, chain: Chain) -> None:
    for release in (history.release, chain.release):
        assert find_pickles(release.home) == []
