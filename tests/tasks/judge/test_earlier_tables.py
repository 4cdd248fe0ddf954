"""What earlier tables of a home say about a release."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tasks.judge.earlier_tables import judge_earlier_refusals, judge_record_ids, judge_tunes
from tests.support.compared_tables import (
    ID,
    ComparedTables,
    append_rows,
    number_people,
    open_tables,
    select_rows,
)
from warehouse.clock import now
from warehouse.database import Run, move_run
from warehouse.stages import Stage
from warehouse.tunes import Records, record_begin

PEOPLE = number_people(40, columns=4)
REFUSED = ("FAIL", Stage.REFUSED)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[ComparedTables]:
    with open_tables(tmp_path / "home") as home:
        yield home


def judge(home: ComparedTables, run: Run, data: str = "") -> str:
    """Return the outcome of the earlier refusals, "" if there are none."""
    return "".join(found.outcome for found in judge_earlier_refusals(home.db, run, data))


@pytest.mark.extended
@pytest.mark.parametrize("dataset", ["people", "others"])
def test_judge_same_data_after_refusal_review(home: ComparedTables, dataset: str) -> None:
    home.end(home.add(PEOPLE).run, *REFUSED)
    run = home.add(select_rows(PEOPLE, range(1, 40)), dataset).run
    (finding,) = judge_earlier_refusals(home.db, run, "")
    assert (finding.check, finding.outcome) == ("earlier_refusals", "REVIEW")
    assert "(people-0001)" in finding.why


def test_judge_same_settings_after_refusal_review(home: ComparedTables) -> None:
    first = home.add(PEOPLE).run
    home.end(first, *REFUSED)
    run = home.add(PEOPLE, source=first.source_digest).run
    same = replace(run, file_digest=first.file_digest)
    assert judge(home, same) == "REVIEW"


@pytest.mark.parametrize("dataset", ["people", "renamed"])
def test_judge_tunes_forbidden_review(home: ComparedTables, dataset: str) -> None:
    run = home.add(PEOPLE, dataset).run
    assert judge_tunes(home.db, run, "data", may_tune=False) == ()
    records = Records("other keys", run.source_digest)
    record_begin(home.db, "people", "plan", records, ("a", "b"), {})
    (finding,) = judge_tunes(home.db, run, "data", may_tune=False)
    assert (finding.outcome, finding.observed) == ("REVIEW", "2 tried")
    assert judge_tunes(home.db, run, "data", may_tune=True) == ()


def test_judge_other_data_after_refusal_no_finding(home: ComparedTables) -> None:
    home.end(home.add(PEOPLE).run, *REFUSED)
    assert judge(home, home.add(number_people(40, columns=4, seed=2)).run) == ""


@pytest.mark.extended
def test_judge_audit_without_verdict_review(home: ComparedTables) -> None:
    """Its scores could be read already, whether or not the run was abandoned."""
    run = home.add(PEOPLE).run
    for stage in (Stage.SANITIZED, Stage.AUDITED):
        assert judge(home, home.add(PEOPLE, f"before_{stage}").run) == ""
        move_run(home.db, run.release_id, stage, {})
    assert judge(home, home.add(PEOPLE, "others").run) == "REVIEW"
    assert judge(home, home.add(PEOPLE).run) == "REVIEW"


@pytest.mark.parametrize(
    ("outcome", "stages", "found"),
    [
        ("REVIEW", (Stage.AWAITING_REVIEW,), "REVIEW"),
        ("REVIEW", (Stage.AWAITING_REVIEW, Stage.ABANDONED), "REVIEW"),
        ("REVIEW", (Stage.AWAITING_REVIEW, Stage.REFUSED), "REVIEW"),  # a person rejected it
        ("REVIEW", (Stage.AWAITING_REVIEW, Stage.PUBLISHED), ""),  # people approved it
        ("REVIEW", (Stage.DRY_RUN_PASSED,), "REVIEW"),
        ("PASS", (Stage.APPROVED, Stage.PUBLISHED), ""),
        ("PASS", (Stage.APPROVED, Stage.ABANDONED), ""),
        ("PASS", (Stage.APPROVED, Stage.NO_CHANGE), ""),
        ("PASS", (Stage.APPROVED, Stage.REFUSED), "REVIEW"),  # by the checks before publishing
    ],
)
def test_judge_after_other_endings(
    home: ComparedTables, outcome: str, stages: tuple[Stage, ...], found: str
) -> None:
    home.end(home.add(PEOPLE).run, outcome, *stages)
    assert judge(home, home.add(PEOPLE, "others").run) == found


@pytest.mark.slow
def test_judge_review_without_new_version_decides_nothing(home: ComparedTables) -> None:
    """The same bytes as before need no decision, and the refusal in between stays."""
    home.end(home.add(PEOPLE).run, "PASS", Stage.APPROVED, Stage.PUBLISHED)
    ended = ("REVIEW", Stage.AWAITING_REVIEW, Stage.NO_CHANGE)
    home.end(home.add(PEOPLE).run, *ended)
    assert judge(home, home.add(PEOPLE).run) == ""
    home.end(home.add(PEOPLE).run, *REFUSED)
    home.end(home.add(PEOPLE).run, *ended)
    assert judge(home, home.add(PEOPLE).run) == "REVIEW"


@pytest.mark.extended
def test_judge_approval_of_other_data_clears_nothing(home: ComparedTables) -> None:
    home.end(home.add(PEOPLE).run, *REFUSED)
    other = number_people(40, columns=4, seed=2)
    home.end(home.add(other).run, "PASS", Stage.APPROVED, Stage.PUBLISHED)
    assert judge(home, home.add(append_rows(PEOPLE, other), "both").run) == "REVIEW"


@pytest.mark.extended
@pytest.mark.parametrize(
    ("changes", "outcome"),
    [
        ({}, "FAIL"),
        ({"file_digest": "other"}, "REVIEW"),
        ({"code_version": "other"}, "REVIEW"),
        ({"source_digest": "other"}, "REVIEW"),
    ],
)
def test_judge_rejected_release_fail_or_review(
    home: ComparedTables, changes: dict[str, str], outcome: str
) -> None:
    first = home.add(PEOPLE).run
    home.end(first, "REVIEW", Stage.AWAITING_REVIEW, Stage.REFUSED)
    decision = [first.release_id, "reject", 1, "bob", None, "No.", "d", "p", "c", now()]
    empty = [None] * 5  # seal and signature
    marks = ", ".join("?" for _ in (*decision, *empty))
    home.db.execute(f"insert into audit.decision values ({marks})", [*decision, *empty])
    run = home.add(PEOPLE, source=first.source_digest).run
    run = replace(run, **{"file_digest": first.file_digest, **changes})
    assert judge(home, run) == outcome


def change_people(table: dict[str, Any], week: int, rng: random.Random) -> dict[str, Any]:
    """Change a few records, delete one and add one, as a register does every week."""
    rows = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
    for row in rng.sample(rows, 3):
        row[f"c{rng.randrange(4)}"] = round(rng.gauss(50, 9), 3)
    rows.pop(rng.randrange(len(rows)))
    new = {f"c{j}": round(rng.gauss(50, 9), 3) for j in range(4)}
    rows.append({ID: f"w{week}", **new})
    return {name: [row[name] for row in rows] for name in table}


def release_weekly(home: ComparedTables, weeks: int, refused: int) -> tuple[int, list[int]]:
    """Return how many approvals a schedule needs, and what each week added to the warehouse.

    The gates pass every week but one. Reviewers are slow: they decide in the second week.
    """
    table, rng, approvals, added = dict(PEOPLE), random.Random(7), 0, []
    waiting = 0
    for week in range(weeks):
        found = home.add(table)
        added.append(found.values)
        assert judge_record_ids(home.db, found.run) == ()
        outcome = "FAIL" if week == refused else judge(home, found.run) or "PASS"
        if outcome == "REVIEW":
            waiting += 1
            approvals += waiting == 2
            end = Stage.PUBLISHED if waiting == 2 else Stage.ABANDONED
            home.end(found.run, outcome, Stage.AWAITING_REVIEW, end)
        elif outcome == "FAIL":
            home.end(found.run, *REFUSED)
        else:
            home.end(found.run, outcome, Stage.APPROVED, Stage.PUBLISHED)
        table = change_people(table, week, rng)
    return approvals, added


@pytest.mark.slow
@pytest.mark.parametrize("weeks", [8, 52])
def test_judge_weekly_releases_one_refusal_one_approval(home: ComparedTables, weeks: int) -> None:
    approvals, added = release_weekly(home, weeks, refused=3)
    assert approvals == 1
    assert max(added[1:]) < added[0] / 8  # what changed, not the table again


@pytest.mark.extended
def test_judge_record_ids_renumbered_review(home: ComparedTables) -> None:
    home.add(PEOPLE)
    run = home.add(PEOPLE | {ID: [f"q{i}" for i in range(40)]}).run
    (finding,) = judge_record_ids(home.db, run)
    assert (finding.check, finding.outcome) == ("record_ids", "REVIEW")
    assert "100 %" in finding.why and "the id that it had" in finding.why


@pytest.mark.extended
def test_judge_record_ids_two_renumbered_no_finding(home: ComparedTables) -> None:
    """They may be coincidences."""
    home.add(PEOPLE)
    run = home.add(PEOPLE | {ID: ["q0", "q1", *PEOPLE[ID][2:]]}).run
    assert judge_record_ids(home.db, run) == ()
