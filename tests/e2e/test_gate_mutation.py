from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import tomlkit

from ppdm.cli.release_files import read_release_file
from ppdm_core.model.errors import BadInput, MachineTrouble, Refused, Undecided
from ppdm_core.model.score import AuditReport
from tests.support import mutants
from tests.support.forkserver import Result
from tests.support.kills import orphans
from tests.support.slow_cases import mark_slow, take_in_turn
from tests.support.small_release import ATTACKS, Small
from warehouse.database import Store
from warehouse.home import Home
from warehouse.publishing.publish import publish_release
from warehouse.stage_facts import AuditedFacts, read_facts

Maker = Callable[..., Small]

FAILURES = {
    "removed": "KeyError",
    "raising": "ArithmeticError",
    "hanging": "TimeLimit",
    "dying": "WorkerDied",
    "empty": "NoScore",
    "nan": "Defect",
    "infinity": "Defect",
    "scoreless": "NoScore",
}
NORMAL = {
    ("hanging", "record_linkage"),
    ("nan", "record_linkage"),
}
# Broken in an attack process as a release starts it, each attack in turn; the others in a fork.
REAL = take_in_turn(FAILURES, ATTACKS)
MATRIX = [
    pytest.param(kind, name, marks=() if (kind, name) in NORMAL else pytest.mark.slow)
    for kind in FAILURES
    for name in ATTACKS
]


@pytest.fixture(scope="module")
def sanitized(tmp_path_factory: pytest.TempPathFactory, release_in: Maker) -> Small:
    """Return a release that is ready for the audit."""
    return run_up_to("draw candidate", release_in(tmp_path_factory.mktemp("sanitized")))


@pytest.fixture(scope="module")
def approved(tmp_path_factory: pytest.TempPathFactory, release_in: Maker) -> Small:
    """Return a release that is approved and ready to be published."""
    return run_up_to("judge", release_in(tmp_path_factory.mktemp("approved")))


def run_up_to(step: str, release: Small) -> Small:
    assert release.write().run(step, entry="prepared").exit_code == 0
    return release


def install_mutant(release: Small, kind: str, name: str, *, is_forked: bool = False) -> None:
    """Break an attack, in the attack process of a release or in a quicker fork."""
    release.env["PPDM_TESTS_MUTANT"] = f"{kind} {name}"
    if is_forked:
        return
    folder = release.folder / "mutant"
    folder.mkdir(exist_ok=True)
    shutil.copyfile(mutants.__file__, folder / "sitecustomize.py")
    release.env["PYTHONPATH"] = str(folder)


def read_ending(release: Small) -> tuple[str, AuditReport, list[dict[str, str]]]:
    """Stage, report and findings of the run."""
    with Store(Home(release.home)).transaction("tests") as db:
        release_id, stage = db.execute(
            "select max(release_id), arg_max(stage, release_id) from meta.run"
        ).fetchall()[0]
        ((findings,),) = db.execute("select findings from audit.verdict").fetchall()
        report = read_facts(db, release_id, AuditedFacts).report
    return stage, report, json.loads(findings)


def check_refused(release: Small, result: Result, name: str, why: str) -> None:
    assert (result.exit_code, result.stdout) == (0, "refused\n")
    stage, report, findings = read_ending(release)
    assert stage == "refused"
    assert report.failed.get(name, "not asked") == why
    failed = [each["check"] for each in findings if each["outcome"] == "FAIL"]
    assert f"required.{name}" in failed
    assert not release.published.exists()


@pytest.mark.parametrize(("kind", "name"), MATRIX)
def test_gate_broken_audit_refused(kind: str, name: str, sanitized: Small, tmp_path: Path) -> None:
    release = sanitized.copied_to(tmp_path / "copy")
    if kind == "hanging":
        release.content["audit"]["time_limit"] = "3 s"
        release.write()  # another policy, and so another run
    install_mutant(release, kind, name, is_forked=(kind, name) not in REAL)
    result = release.run("", entry="prepared")
    check_refused(release, result, name, FAILURES[kind])


@pytest.mark.slow
@pytest.mark.parametrize("name", ATTACKS)
def test_gate_audit_not_requested_refused(name: str, sanitized: Small, tmp_path: Path) -> None:
    release = sanitized.copied_to(tmp_path / "copy")
    result = release.run(name, "", entry="without_audit")
    check_refused(release, result, name, "not asked")


@pytest.mark.extended
@pytest.mark.parametrize(
    ("what", "check"),
    [
        ("everything", "self_test"),
        pytest.param("attacks", "self_test.attacks", marks=pytest.mark.slow),
        pytest.param("policy", "self_test.policy", marks=pytest.mark.slow),
    ],
)
def test_gate_missing_self_test_refused(
    what: str, check: str, sanitized: Small, tmp_path: Path
) -> None:
    release = sanitized.copied_to(tmp_path / "copy")
    result = release.run(what, "", entry="without_self_test")
    assert (result.exit_code, result.stdout) == (0, "refused\n")
    stage, report, findings = read_ending(release)
    assert (stage, report.failed) == ("refused", {})
    assert [each["check"] for each in findings if each["outcome"] != "PASS"] == [check]
    assert not release.published.exists()


@pytest.mark.slow
def test_gate_printing_attack_published(sanitized: Small, tmp_path: Path) -> None:
    """The control: an attack that only prints text does not block."""
    release = sanitized.copied_to(tmp_path / "copy")
    install_mutant(release, "printing", "known_pairs")
    result = release.run("", entry="prepared")
    assert (result.exit_code, result.stdout) == (0, "published\n")
    assert read_ending(release)[1].failed == {}
    assert release.versions() == ["0001"]


@pytest.mark.extended
def test_release_file_edited_in_the_middle_first_settings_hold(
    sanitized: Small, tmp_path: Path
) -> None:
    release = sanitized.copied_to(tmp_path / "copy")
    first = read_release_file(release.file)[1]
    release.content["limits"]["record_linkage.rate"]["value"] = 0.9
    edited = tmp_path / "edited.toml"
    edited.write_text(tomlkit.dumps(release.content))
    result = release.run("attack asked", str(edited), "", entry="edited")
    assert (result.exit_code, result.stdout) == (0, "published\n")
    assert release.file.read_text() == edited.read_text()
    manifest = json.loads((release.published / "latest" / "manifest.json").read_text())
    assert manifest["verdict"]["policy_digest"] == first.policy.digest
    limits = {each["check"]: each["limit"] for each in manifest["verdict"]["findings"]}
    assert limits["record_linkage.rate"].startswith("at most 0.2 ")


@pytest.mark.slow
def test_release_broken_audit_short_report(sanitized: Small, tmp_path: Path) -> None:
    release = sanitized.copied_to(tmp_path / "copy")
    install_mutant(release, "raising", "known_pairs")
    result = release.run("release")
    assert result.exit_code == 3
    assert "REFUSED" in result.stdout and "known_pairs" in result.stdout
    assert len(result.stdout.splitlines()) <= 30  # one panel, and what to do next
    assert not release.published.exists()


def test_release_killed_with_hanging_attack_no_orphans(sanitized: Small, tmp_path: Path) -> None:
    release = sanitized.copied_to(tmp_path / "copy")
    install_mutant(release, "hanging", "transform_inverse")
    assert release.run("attack asked", "", entry="killed_steps").exit_code == -9
    deadline = time.monotonic() + 30
    while orphans(release) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert orphans(release) == []


def change(release: Small, statement: str) -> None:
    with Store(Home(release.home)).transaction("tests") as db:
        db.execute(statement)


VERDICTS = {
    "edited outcome": "update audit.verdict set outcome = 'FAIL'",
    "emptied findings": "update audit.verdict set findings = '[]'",
    "a failed finding": "update audit.verdict set findings = "
    "replace(findings::varchar, '\"PASS\"', '\"FAIL\"')",
    "of other data": "update audit.verdict set data_digest = repeat('0', 64)",
    "of another policy": "update audit.verdict set policy_digest = repeat('0', 64)",
    "of other code": "update audit.verdict set code_version = repeat('0', 16)",
    "of another release": "update audit.verdict set release_id = 'small-0002'",
    "deleted": "delete from audit.verdict",
    "a second one": "insert into audit.verdict select * from audit.verdict",
    "of another time": "update audit.verdict set happened = happened + interval 1 microsecond",
    "another seal": "update audit.verdict set mac = repeat('0', 64)",
    "no seal": "update audit.verdict set mac = null",
    "a word of a finding": "update audit.verdict set findings = "
    "replace(findings::varchar, ' the ', ' a ')",
    "an edited event": "update meta.event set detail = '{}' where kind = 'audited'",
    "a deleted event": "delete from meta.event where kind = 'audited'",
    "an event in the future": "update meta.event set happened = happened + interval 1 hour",
    "one cell of the data": "update sanitized.small_0001_candidate "
    "set component_1 = component_1 + 1 where __ppdm_row = "
    "(select min(__ppdm_row) from sanitized.small_0001_candidate)",
    "one row less": "delete from sanitized.small_0001_candidate where __ppdm_row = "
    "(select min(__ppdm_row) from sanitized.small_0001_candidate)",
}


# The seal of the verdict, the chain of events and the digest of the data; the others are slow.
NORMAL_EDITS = ("edited outcome", "deleted", "no seal", "a deleted event", "one cell of the data")


def prepare_publication(release: Small) -> Any:
    """Return the store, and the request to publish as the pipeline makes it."""
    from tasks.publish.task import build_request, read_publish_inputs
    from tasks.release_summary import summarize_run

    context = read_release_file(release.file)[1]
    with context.open_run("small-0001") as (db, run):
        summary = summarize_run(db, run)
        inputs = read_publish_inputs(db, context, summary)
    return context.open_store(), build_request(context, summary, inputs)


@pytest.mark.parametrize("what", mark_slow(VERDICTS, NORMAL_EDITS))
def test_publish_edited_verdict_refused(what: str, approved: Small, tmp_path: Path) -> None:
    release = approved.copied_to(tmp_path / "copy")
    store, request = prepare_publication(release)
    change(release, VERDICTS[what])
    with pytest.raises(Refused, match="cannot be published"):
        publish_release(store, request)
    check_not_published(release)


@pytest.mark.extended
@pytest.mark.parametrize("what", ["one byte", "gone", "of another release"])
def test_publish_edited_file_refused(what: str, approved: Small, tmp_path: Path) -> None:
    release = approved.copied_to(tmp_path / "copy")
    store, request = prepare_publication(release)
    candidate = release.private / "candidates" / "small-0001.parquet"
    content = bytearray(candidate.read_bytes())
    content[len(content) // 3] ^= 1
    if what == "gone":
        candidate.unlink()
    elif what == "one byte":
        candidate.write_bytes(content)
    else:
        columns = pq.read_table(candidate)
        pq.write_table(columns.slice(1), candidate)
    with pytest.raises(Refused, match="cannot be published"):
        publish_release(store, request)
    check_not_published(release)


@pytest.mark.parametrize("what", ["candidate", "dataset"])
def test_publish_link_in_home_refused(what: str, approved: Small, tmp_path: Path) -> None:
    release = approved.copied_to(tmp_path / "copy")
    store, request = prepare_publication(release)
    outside = tmp_path / "outside"
    outside.mkdir()
    if what == "candidate":  # of the right bytes, which whoever owns the file can change later
        candidate = release.private / "candidates" / "small-0001.parquet"
        candidate.rename(outside / "data.parquet")
        candidate.symlink_to(outside / "data.parquet")
    else:
        release.published.symlink_to(outside)
    before = sorted(outside.iterdir())
    with pytest.raises(Refused, match=r"cannot be published: .* link"):
        publish_release(store, request)
    assert sorted(outside.iterdir()) == before
    with Store(Home(release.home)).transaction("tests") as db:
        assert db.execute("select * from published.version").fetchall() == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["0001", ".0001.tmp", ".0001.old.tmp", "latest", ".latest.tmp"])
def test_publish_link_in_place_of_version_replaced(
    name: str, approved: Small, tmp_path: Path
) -> None:
    release = approved.copied_to(tmp_path / "copy")
    store, request = prepare_publication(release)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("kept")
    release.published.mkdir(parents=True)
    (release.published / name).symlink_to(outside)
    folder = publish_release(store, request)
    assert not folder.is_symlink() and release.versions() == ["0001"]
    assert os.readlink(release.published / "latest") == "0001"
    assert [path.name for path in outside.iterdir()] == ["kept"]


def test_publish_forged_digest_refused(approved: Small, tmp_path: Path) -> None:
    """The verdict counts, not what the caller says about the bytes."""
    release = approved.copied_to(tmp_path / "copy")
    store, request = prepare_publication(release)
    candidate = release.private / "candidates" / "small-0001.parquet"
    rows = pq.read_table(candidate)
    with (
        candidate.open("wb") as file,
        pq.ParquetWriter(
            file, rows.schema, write_statistics=False, use_dictionary=False, store_schema=False
        ) as writer,
    ):
        writer.write_table(rows)
    digest = hashlib.sha256(candidate.read_bytes()).hexdigest()
    with pytest.raises(Refused, match="not those that the verdict is about"):
        publish_release(store, replace(request, data_digest=digest))
    check_not_published(release)


@pytest.mark.extended
@pytest.mark.parametrize("what", ["missing", "another"])
def test_publish_missing_or_other_home_key_bad_input(
    what: str, approved: Small, tmp_path: Path
) -> None:
    release = approved.copied_to(tmp_path / "copy")
    store, request = prepare_publication(release)
    key = release.private / "keys" / "home-seal.key"
    stored_key = key.read_text()
    key.unlink() if what == "missing" else key.write_text("ab" * 32)
    with pytest.raises(BadInput, match="ppdm key restore"):
        publish_release(store, request)
    check_not_published(release)
    key.write_text(stored_key)
    publish_release(store, request)
    assert release.versions() == ["0001"]


@pytest.mark.slow
def test_publish_interrupted_after_commit_version_remains(
    approved: Small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from warehouse import database as store_module
    from warehouse.publishing.manifest import verify

    release = approved.copied_to(tmp_path / "copy")
    store, request = prepare_publication(release)

    def interrupted(db: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(store_module, "update_head", interrupted)
        with pytest.raises(KeyboardInterrupt):
            publish_release(store, request)
    assert release.versions() == ["0001"]
    verify(release.published / "0001")
    assert release.run("", entry="prepared").stdout == "no_change\n"
    assert release.versions() == ["0001"]


def test_publish_clock_moved_back_machine_trouble(
    approved: Small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from warehouse.integrity import seals

    release = approved.copied_to(tmp_path / "copy")
    store, request = prepare_publication(release)
    monkeypatch.setattr(seals, "now", lambda: datetime.now(UTC) - timedelta(days=1))
    with pytest.raises(MachineTrouble, match="clock"):
        publish_release(store, request)
    check_not_published(release)


@pytest.mark.extended
@pytest.mark.parametrize("what", ["policy_digest", "code_version"])
def test_publish_other_policy_or_code_refused(what: str, approved: Small, tmp_path: Path) -> None:
    release = approved.copied_to(tmp_path / "copy")
    store, request = prepare_publication(release)
    with pytest.raises(Refused, match="cannot be published"):
        publish_release(store, replace(request, **{what: "0" * 64}))
    check_not_published(release)
    publish_release(store, request)  # the control: nothing else keeps it shut
    assert release.versions() == ["0001"]


DECISIONS = {
    "deleted": "delete from audit.decision",
    "by another person": "update audit.decision set uid = 2, name = 'bin'",
    "of other data": "update audit.decision set data_digest = repeat('0', 64)",
    "of another day": "update audit.decision set happened = happened + interval 10 days",
    "there twice": "insert into audit.decision select * from audit.decision",
    "fewer are needed": "update audit.waiting set file = "
    "replace(file::varchar, '\"approvals\":2', '\"approvals\":1')",
    "by no author": "delete from meta.author",
    "of a verdict that was edited": "update audit.verdict set outcome = 'PASS'",
    "of findings that were edited": "update audit.verdict set findings = "
    "replace(findings::varchar, 'REVIEW', 'PASS')",
    "of a ledger that was edited": "update ledger.entry set total = 0",
    "of charges that were deleted": "delete from ledger.charge",
}


@pytest.fixture(scope="module")
def agreed(tmp_path_factory: pytest.TempPathFactory, waiting: Small) -> Small:
    """What waited for people, and has all the approvals that it needs."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to act for other users")
    release = waiting.copied_to(tmp_path_factory.mktemp("agreed") / "copy")
    for user in ("1", "2"):  # the second dies before its release leaves
        release.run(user, "publishing begun", "small-0001", entry="approved_by")
    return release


@pytest.mark.extended
@pytest.mark.parametrize("what", mark_slow(DECISIONS, ("deleted", "fewer are needed")))
def test_publish_edited_decisions_refused(what: str, agreed: Small, tmp_path: Path) -> None:
    release = agreed.copied_to(tmp_path / "copy")
    store, request = prepare_publication(release)
    change(release, DECISIONS[what])
    with pytest.raises(Refused, match="cannot be published"):
        publish_release(store, request)
    check_not_published(release, "awaiting_review")


@pytest.mark.extended
@pytest.mark.parametrize(
    ("days", "error"),
    [(13, None), (15, Undecided), (-1, MachineTrouble)],
    ids=["in time", "lapsed", "clock moved back"],
)
def test_publish_approvals_expire_after_limit(
    days: int,
    error: type[Exception] | None,
    agreed: Small,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from warehouse.integrity import seals

    release = agreed.copied_to(tmp_path / "copy")
    store, request = prepare_publication(release)
    monkeypatch.setattr(seals, "now", lambda: datetime.now(UTC) + timedelta(days=days))
    if error is None:
        publish_release(store, request)
        assert release.versions() == ["0001"]
        return
    with pytest.raises(error):
        publish_release(store, request)
    check_not_published(release, "awaiting_review")


def check_not_published(release: Small, stage: str = "approved") -> None:
    """Check that nothing is published, not even under a hidden name."""
    assert not release.published.exists() or list(release.published.iterdir()) == []
    with Store(Home(release.home)).transaction("tests") as db:
        assert db.execute("select * from published.version").fetchall() == []
        assert db.execute("select stage from meta.run").fetchall() == [(stage,)]


@pytest.mark.extended
def test_judge_other_code_version_new_verdict(approved: Small, tmp_path: Path) -> None:
    release = approved.copied_to(tmp_path / "copy")
    assert release.run("judge", entry="other_code").exit_code == 0
    with Store(Home(release.home)).transaction("tests") as db:
        runs = db.execute("select release_id, stage from meta.run").fetchall()
        verdicts = db.execute("select release_id, code_version from audit.verdict").fetchall()
    assert dict(runs) == {"small-0001": "abandoned", "small-0002": "approved"}
    assert len(verdicts) == 2 and len(set(dict(verdicts).values())) == 2
