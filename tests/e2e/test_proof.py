"""What a steward can be held to, by the commands: signatures, bands, a history that is whole."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ppdm_core.model.manifest import seal
from tests.support.history import History
from tests.support.kills import Chain
from tests.support.shown_check import run_shown_check
from tests.support.small_release import Small
from warehouse.database import Store
from warehouse.home import Home
from warehouse.stage_facts import AuditedFacts, read_facts


def ask_json(release: Small, *args: str) -> tuple[int, dict[str, Any]]:
    result = release.ask(*args, "--json")
    return result.exit_code, json.loads(result.stdout)


@pytest.fixture(scope="module")
def public_key(history: History, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("outside") / "steward.pem"
    result = history.release.ask("key", "public", "--out", str(path))
    assert result.exit_code == 0, result
    assert "BEGIN PUBLIC KEY" in path.read_text()
    return path


def test_verify_public_key_given_signature_valid(history: History, public_key: Path) -> None:
    folder = str(history.release.published / "latest")
    code, found = ask_json(history.release, "verify", folder, "--public-key", str(public_key))
    assert (code, found["signature"], found["not_checked"]) == (0, "valid", None)
    plain = history.release.ask("verify", folder)
    assert plain.exit_code == 0
    assert "NOT checked: who made it" in plain.stdout and found["signer"] in plain.stdout


def test_manifests_all_versions_same_key(history: History, chain: Chain) -> None:
    for release in (history.release, chain.release):
        manifests = [json.loads(path.read_text()) for path in release.published.glob("0*/*.json")]
        assert manifests
        assert len({manifest["signature"]["key"] for manifest in manifests}) == 1


def test_verify_key_of_other_home_refused(chain: Chain, public_key: Path, tmp_path: Path) -> None:
    folder = str(chain.release.published / "latest")
    code, found = ask_json(chain.release, "verify", folder, "--public-key", str(public_key))
    assert (code, found["error"]["kind"]) == (3, "refused")
    assert "another key" in found["error"]["message"]
    missing = str(tmp_path / "missing.pem")
    assert ask_json(chain.release, "verify", folder, "--public-key", missing)[0] == 2


def test_verify_unsigned_manifest_reported_as_unsigned(
    history: History, public_key: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(history.release.published / "latest", copy)
    manifest = json.loads((copy / "manifest.json").read_text())
    body = {name: manifest[name] for name in manifest if name not in ("digest", "signature")}
    (copy / "manifest.json").write_bytes(seal(body))
    result = history.release.ask("verify", str(copy))
    assert result.exit_code == 0
    assert "every byte is as its manifest says" in result.stdout
    assert "is not signed" in result.stdout
    code, found = ask_json(history.release, "verify", str(copy), "--public-key", str(public_key))
    assert code == 3 and "not signed" in found["error"]["message"]


def test_manifest_verdict_matches_warehouse(history: History) -> None:
    manifest = json.loads((history.release.published / "0001" / "manifest.json").read_text())
    with Store(Home(history.release.home)).transaction("tests") as db:
        query = "select {} from {} where release_id = 'history-0001' {}"
        ((policy, code),) = db.execute(
            query.format("policy_digest, code_version", "audit.verdict", "")
        ).fetchall()
        ((number, mac),) = db.execute(
            query.format("number, mac", "meta.event", "and kind = 'approved'")
        ).fetchall()
    assert manifest["verdict"]["policy_digest"] == policy
    assert manifest["code_version"] == code
    assert manifest["history"] == {"event": number, "mac": mac}
    played = set(history.release.content["audit"]["required"])
    assert played <= set(manifest["attacks"])
    assert all(re.fullmatch("[0-9a-f]{16}", each) for each in manifest["attacks"].values())


def exact_figures(release: Small) -> Iterator[str]:
    """Every measured figure, as it would be printed: in three digits, and in per cent."""
    with Store(Home(release.home)).transaction("tests") as db:
        runs = db.execute("select release_id from meta.run where stage = 'published'").fetchall()
        reports = [read_facts(db, release_id, AuditedFacts).report for (release_id,) in runs]
    for report in reports:
        for score in report.scores:
            for name in ("value", "low", "high", "baseline", "worst", "worst_decile", "original"):
                figure = getattr(score, name)
                if figure is not None:
                    yield f"{figure:.3g}"
                    yield f"{100 * figure:.1f} %"


# The edges of the bands, as they are printed: whole numbers above 1.
ROUND = {f"{whole}" for whole in range(1001)} | {f"{step / 20:.3g}" for step in range(21)}
ROUND |= {f"{100 * step / 20:.1f} %" for step in range(21)} | {"0.01", "0.02", "1.0 %", "2.0 %"}


RELEASED_TABLE = r'<section aria-labelledby="released">.*?</section>'


def count_digits(figure: str) -> int:
    """Return the number of significant digits."""
    return len(re.sub(r"\D", "", figure).lstrip("0"))


def test_published_files_scores_only_in_bands(history: History) -> None:
    exact = {
        figure
        for figure in exact_figures(history.release)
        if figure not in ROUND and count_digits(figure) >= 3  # fewer coincide by chance
    }
    assert len(exact) > 30
    for folder in history.release.published.glob("0*"):
        card = (folder / "card.md").read_text()
        page = (folder / "report.html").read_text()
        page = re.sub(RELEASED_TABLE, "", page, flags=re.S)  # computed from the file alone
        page = re.sub(r"<(svg|style).*?</\1>", "", page, flags=re.S)
        manifest = json.loads((folder / "manifest.json").read_text())
        published_text = card + page + json.dumps([manifest["verdict"], manifest.get("self_test")])
        numbers = set(re.findall(r"\d[\d.]*(?: %)?", published_text))
        assert not exact & numbers, sorted(exact & numbers)
        assert "`record_linkage.rate` | at most 0." in card  # it is reported, in bands


@pytest.mark.extended
def test_history_verify_after_all_runs_passes(history: History, chain: Chain) -> None:
    for release, versions in ((history.release, 2), (chain.release, 1)):
        code, found = ask_json(release, "history", "--verify")
        assert (code, found["folders"]) == (0, versions)
    _, *listed = history.release.ask("history").stdout.splitlines()
    code, found = ask_json(history.release, "history", "--verify")
    assert len(listed) == found["event_count"]
    assert "history-0001" in listed[0] and "created" in listed[0]


def test_history_verify_edited_event_refused_and_named(history: History, tmp_path: Path) -> None:
    release = history.release.copied_to(tmp_path / "copy")
    with Store(Home(release.home)).transaction("tests") as db:
        db.execute("update meta.event set happened = happened - interval 1 day where number = 4")
    code, found = ask_json(release, "history", "--verify")
    assert (code, found["error"]["kind"]) == (3, "refused")
    assert found["error"]["message"].startswith("Event 4 (history-0001, ")


@pytest.mark.slow
def test_key_backup_home_key_restored(history: History, tmp_path: Path) -> None:
    release = history.release.copied_to(tmp_path / "copy")
    backup, key = tmp_path / "backup", release.private / "keys" / "home-seal.key"
    made = release.ask("key", "backup", "--out", str(backup))
    assert made.exit_code == 0 and "this home" in made.stdout
    content = key.read_text()
    assert content.strip() not in made.stdout + made.stderr
    key.unlink()
    code, found = ask_json(release, "history", "--verify")
    assert code == 2 and "ppdm key backup" in found["error"]["remedy"]
    assert release.ask("key", "restore", str(backup)).exit_code == 0
    assert key.read_text() == content
    assert release.ask("history", "--verify").exit_code == 0


def test_proof_page_shown_check_accepts_published_version(
    history: History, public_key: Path, tmp_path: Path
) -> None:
    shutil.copyfile(public_key, tmp_path / "steward.pem")
    shutil.copytree(history.release.published / "latest", tmp_path / "small" / "0001")
    assert run_shown_check(tmp_path).returncode == 0
