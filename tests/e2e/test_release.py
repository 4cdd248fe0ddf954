from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ppdm_core.model.errors import Refused
from tests.support.forkserver import Result
from tests.support.history import History
from tests.support.slow_cases import mark_slow
from tests.support.small_release import Small
from warehouse.database import Store
from warehouse.home import Home
from warehouse.publishing.manifest import verify

Maker = Callable[..., Small]
ERROR = {"kind", "message", "file", "column", "remedy", "others"}
DIGEST = 64  # hexadecimal digits of a SHA-256


def parse_output(result: Result) -> dict[str, Any]:
    """The one JSON object on standard output."""
    assert result.stdout.count("\n") == 1 and result.stdout.endswith("\n"), result
    content: dict[str, Any] = json.loads(result.stdout)
    assert list(content)[:4] == ["schema", "ok", "exit_code", "error"]
    assert content["exit_code"] == result.exit_code
    assert content["ok"] == (result.exit_code == 0)
    assert (content["error"] is None) == content["ok"]
    if content["error"]:
        assert set(content["error"]) == ERROR
    return content


def query(release: Small, text: str) -> list[tuple[Any, ...]]:
    with Store(Home(release.home)).transaction("tests") as db:
        return db.execute(text).fetchall()


def test_release_approved_published(history: History) -> None:
    result = history.results["approved"]
    content = parse_output(result)
    assert result.exit_code == 0
    found = content["release"]
    assert (found["release_id"], found["stage"]) == ("history-0001", "published")
    folder = Path(found["published"])
    names = {"data.parquet", "manifest.json", "card.md", "report.html"}
    assert {path.name for path in folder.iterdir()} == names
    assert set(found["ln_gammas"]) == {"component", "attribute", "record"}
    assert {each["outcome"] for each in found["findings"]} == {"PASS"}
    assert {each["check"] for each in found["findings"]} >= set(history.release.content["limits"])


def test_release_without_ledger_limit_card_and_manifest_say_so(history: History) -> None:
    folder = Path(parse_output(history.results["approved"])["release"]["published"])
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["verdict"]["without_limit"] == ["ledger"]
    card = (folder / "card.md").read_text()
    assert "No limit is set on the ledger" in card
    assert "No limit is set on amplification" not in card


def test_release_refused_exit_code_3_nothing_published(history: History) -> None:
    result = history.results["refused"]
    content = parse_output(result)
    assert result.exit_code == 3
    assert content["error"]["kind"] == "refused"
    found = content["release"]
    assert (found["stage"], found["published"], found["version"]) == ("refused", None, None)
    failed = {each["check"] for each in found["findings"] if each["outcome"] == "FAIL"}
    rotated = {"known_pairs.breach_rate", "record_linkage.rate", "membership.true_positive_rate"}
    assert failed == {"amplification.record", *rotated}
    assert found["release_id"].rpartition("-")[2] not in history.release.versions()


def test_release_awaiting_review_exit_code_4_nothing_published(history: History) -> None:
    result = history.results["waiting"]
    assert (result.exit_code, parse_output(result)["release"]["stage"]) == (4, "awaiting_review")
    assert "history-0005" not in {path.name for path in history.release.published.iterdir()}
    assert history.release.versions() == ["0001", "0003"]


def test_release_dry_run_then_changed_row_one_version(history: History) -> None:
    rehearsed = parse_output(history.results["dry run"])["release"]
    changed = parse_output(history.results["changed"])["release"]
    assert (rehearsed["stage"], rehearsed["published"]) == ("dry_run_passed", None)
    assert (changed["stage"], changed["version"]) == ("published", "0003")
    assert history.release.versions() == ["0001", "0003"]
    latest = history.release.published / "latest"
    assert latest.is_symlink() and str(latest.readlink()) == "0003"
    # The rehearsal was of the same bytes, so the same draws were judged; they are charged once.
    before, after = (
        {each["check"]: each for each in found["findings"]} for found in (rehearsed, changed)
    )
    assert "for 1 record that it redraws" in before.pop("ledger.record")["why"]
    assert "redraws no record" in after.pop("ledger.record")["why"]
    assert before == after


def test_release_defect_reported_without_traceback(history: History) -> None:
    result = history.results["defect"]
    assert (result.exit_code, result.stdout) == (1, "")
    last = result.stderr.splitlines()[-1]
    assert last.startswith(
        "ppdm: A defect of ppdm: ConversionException at tests/support/entries.py"
    )
    assert "Traceback" not in result.stderr
    (report,) = (history.release.private / "defects").iterdir()
    assert str(report) in last
    code, message, *places = report.read_text().splitlines()
    assert code.startswith("code ") and message in last
    assert places[-1].startswith("tests/support/entries.py:")
    assert any(place.startswith("tasks/ingest/task.py:") for place in places)


@pytest.mark.extended
def test_status_show_history_list_stages_and_findings(history: History) -> None:
    status = history.release.ask("status", "--json")
    stages = {each["release_id"]: each["stage"] for each in parse_output(status)["runs"]}
    endings = ["published", "dry_run_passed", "published", "refused"]
    endings += ["abandoned", "abandoned", "rejected"]  # the first of these waited for people
    assert stages == {f"history-{i:04d}": stage for i, stage in enumerate(endings, start=1)}
    shown = history.release.ask("show", "history-0004", "--all")
    assert shown.exit_code == 0
    for finding in parse_output(history.results["refused"])["release"]["findings"]:
        assert finding["check"] in shown.stdout
    unknown = history.release.ask("show", "history-0099", "--json")
    assert unknown.exit_code == 2
    assert parse_output(unknown)["error"]["kind"] == "bad_input"


def test_clean_up_old_runs_tables_dropped_digests_stay(history: History) -> None:
    listing = """
        select table_name from information_schema.tables
        where table_schema in ('raw', 'validated', 'sanitized')
    """
    # The last run was rejected and left no tables; keep_raw = 1 keeps no older ones.
    assert query(history.release, listing) == []
    runs = query(history.release, "select source_digest, file_digest from meta.run")
    assert len(runs) == 7
    assert all(len(digest) == DIGEST for run in runs for digest in run)
    facts = query(history.release, "select release_id from meta.fact where kind = 'sanitized'")
    assert {release_id for (release_id,) in facts} == {f"history-{i:04d}" for i in range(1, 6)}
    versions = query(history.release, "select data_digest, manifest_digest from published.version")
    assert len(versions) == 2 and all(len(each) == DIGEST for row in versions for each in row)


def test_events_published_release_all_steps_in_order(history: History) -> None:
    select = "select kind from meta.event where release_id = 'history-0001' order by number"
    steps = ["created", "raw", "validated", "sanitized", "audited", "approved", "published"]
    assert [kind for (kind,) in query(history.release, select)] == steps


def test_prefect_run_refused_release_failed_and_named(history: History, prefect_api: str) -> None:
    from prefect.client.orchestration import get_client

    (row,) = query(
        history.release, "select flow_run_id from meta.run where release_id = 'history-0004'"
    )
    with get_client(sync_client=True) as client:
        run = client.read_flow_run(row[0])
    assert (run.state_name, run.state_type) == ("Failed", "FAILED")
    assert run.name == "history-0004 REFUSED random_rotation"
    assert "history-0004 was refused" in str(run.state and run.state.message)


def test_prefect_run_waiting_release_says_so_and_how_to_decide(
    history: History, prefect_api: str
) -> None:
    from prefect.client.orchestration import get_client

    select = "select flow_run_id from meta.run where release_id = 'history-0005'"
    (row,) = query(history.release, select)
    with get_client(sync_client=True) as client:
        run = client.read_flow_run(row[0])
    assert run.state_name == "Completed"
    assert "WAITS FOR REVIEW" in run.name and "WAITS" in run.tags
    message = str(run.state and run.state.message)
    assert message.startswith("WAITS FOR REVIEW.") and "ppdm decide history-0005" in message


def test_mlflow_runs_history_tagged_with_outcomes(history: History) -> None:
    from mlflow import MlflowClient

    client = MlflowClient(f"sqlite:///{history.release.home}/views/mlflow/mlflow.db")
    experiment = client.get_experiment_by_name("history")
    assert experiment is not None
    runs = client.search_runs([experiment.experiment_id])
    assert [run.info.run_name for run in runs if "series" in run.data.tags] == [
        "history: all releases"
    ]
    runs = [run for run in runs if "series" not in run.data.tags]
    verdicts = {run.data.tags["release_id"]: run.data.tags["outcome"] for run in runs}
    endings = ["published", "dry_run_passed", "published", "refused", "awaiting_review"]
    assert verdicts == {f"history-{i:04d}": stage for i, stage in enumerate(endings, start=1)}
    assert all("zoom/record_linkage.rate.baseline" in run.data.metrics for run in runs)


def test_verify_copied_folder_needs_no_private_files(history: History, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(history.release.published / "latest", copy)
    result = history.release.ask("verify", str(copy), "--json")
    assert parse_output(result)["release_id"] == "history-0003"
    (copy / "card.md").write_text("another card")
    broken = history.release.ask("verify", str(copy), "--json")
    assert parse_output(broken)["error"]["kind"] == "refused"
    assert broken.exit_code == 3
    assert list(tmp_path.iterdir()) == [copy]


@pytest.mark.parametrize(
    "name", mark_slow(["manifest.json", "card.md", "data.parquet"], ["manifest.json"])
)
def test_verify_any_changed_byte_refused(history: History, tmp_path: Path, name: str) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(history.release.published / "latest", copy)
    verify(copy)
    whole = (copy / name).read_bytes()
    with (copy / name).open("r+b", buffering=0) as file:
        for place, byte in enumerate(whole):
            with changed(file, place, byte), pytest.raises(Refused):
                verify(copy)
    verify(copy)


@contextmanager
def changed(file: Any, place: int, byte: int) -> Iterator[None]:
    for value in (byte ^ (1 + place % 255), byte):
        file.seek(place)
        file.write(bytes([value]))
        if value != byte:
            yield


def test_verify_missing_or_added_file_refused(history: History, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(history.release.published / "latest", copy)
    (copy / "extra").touch()
    with pytest.raises(Refused, match="extra is not part"):
        verify(copy)
    (copy / "extra").unlink()
    (copy / "data.parquet").unlink()
    with pytest.raises(Refused, match=r"data\.parquet is missing"):
        verify(copy)


def copy_release(history: History, folder: Path) -> Small:
    release = history.release.copied_to(folder)
    release.rows[6] = {**release.rows[6], "iron": "5.0"}
    return release.write()


@pytest.mark.extended
def test_key_backup_dataset_key_restored(history: History, tmp_path: Path) -> None:
    release = copy_release(history, tmp_path / "copy")
    key, backup = release.private / "keys" / "history.key", tmp_path / "backup"
    made = release.ask("key", "backup", "history", "--out", str(backup))
    assert made.exit_code == 0
    assert backup.stat().st_mode & 0o777 == 0o600
    content = key.read_text()
    assert content.strip() not in made.stdout + made.stderr
    key.unlink()
    assert release.ask("key", "restore", str(backup)).exit_code == 0
    assert key.read_text() == content and key.stat().st_mode & 0o777 == 0o600
    # A backup of another key is not let in.
    other = json.loads(backup.read_text()) | {"key": "00" * 32}
    backup.write_text(json.dumps(other))
    assert release.ask("key", "restore", str(backup)).exit_code == 2
    assert key.read_text() == content


@pytest.mark.extended
@pytest.mark.parametrize(
    "what", ["missing", "another", pytest.param("damaged", marks=pytest.mark.slow)]
)
def test_release_missing_or_other_key_bad_input(
    history: History, tmp_path: Path, what: str
) -> None:
    release = copy_release(history, tmp_path / "copy")
    key = release.private / "keys" / "history.key"
    if what == "missing":
        key.unlink()
    else:
        key.write_text("ab" * 32 if what == "another" else "no key")
    before = release.versions()
    result = release.run("release", "--json")
    assert result.exit_code == 2
    assert "ppdm key backup" in parse_output(result)["error"]["remedy"]
    assert release.versions() == before
    assert key.exists() == (what != "missing")


@pytest.mark.slow
def test_release_without_ids_new_draws_same_scores(small: Maker) -> None:
    release = small()
    del release.content["dataset"]["record_id"]
    release.content["sanitizer"] |= {"basis": "private"}
    del release.content["sanitizer"]["basis_share"]
    release.write()
    for _ in range(2):
        assert release.run("", entry="prepared").exit_code == 0
    first, second = (release.published / number for number in ("0001", "0002"))
    assert (first / "data.parquet").read_bytes() != (second / "data.parquet").read_bytes()
    scores = (
        "select name, value, low, high, worst from audit.score "
        "where release_id = '{}' order by name"
    )
    assert query(release, scores.format("small-0001")) == query(
        release, scores.format("small-0002")
    )
