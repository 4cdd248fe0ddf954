"""What a report shows, from stored facts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ppdm_core.audit.auditor import SCENARIO_STORIES
from ppdm_core.model.schema import Categorical
from ppdm_core.model.verdict import Outcome
from tasks.publish.card import format_card
from tasks.publish.report.build import build_view
from tasks.publish.report.drawing import shorten
from tasks.publish.report.facts import combine_sites
from tasks.publish.report.history_figures import describe_room, forecast_totals
from tasks.publish.report.past import count_room
from tasks.publish.report.row_chart import LABELS
from tasks.publish.report.scores import Judgement, find_title, format_risk
from tasks.publish.report.tiles import build_risk_tile
from tasks.publish.report.words import choose_base, format_count, format_share
from tasks.release_summary import Summary
from tests.support.report_facts import make_facts, make_refused, make_summary, make_waiting
from warehouse.approvals import Standing
from warehouse.stage_facts import SiteFacts, SitesFacts
from warehouse.stages import Stage


def test_build_view_part_of_a_pool_is_handed_to_nobody() -> None:
    steps = build_view(make_facts(make_summary(is_part=True)), "steward").steps
    assert steps[0].text == "Hand over nothing: these rows are in the pool of the centre."
    assert "verify" not in "".join(f"{step.text} {step.command}" for step in steps)


@pytest.mark.parametrize(
    ("share", "base", "text"),
    [
        (0.0, 100, "0 in 100"),
        (0.05, 100, "5 in 100"),
        (0.0103, 1000, "10 in 1,000"),
        (0.0001, 1000, "fewer than 1 in 1,000"),
        (0.9999, 100, "more than 99 in 100"),
        (1.0, 1000, "all"),
        (float("nan"), 100, "not measurable"),
    ],
)
def test_format_share_natural_frequency(share: float, base: int, text: str) -> None:
    assert format_share(share, base) == text


def test_format_share_rounded_one_is_not_all() -> None:
    assert format_share(1.0, 100, is_rounded=True) == "100 in 100"


def test_choose_base_small_share_in_1000() -> None:
    assert (choose_base(0.5, 0.01, None), choose_base(0.5, 0.004), choose_base(0.0)) == (
        100,
        1000,
        100,
    )


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "fewer than 10"), (9, "fewer than 10"), (10, "at most 10"), (51, "at most 60")],
)
def test_format_count_rounded_hides_small_ones(count: int, text: str) -> None:
    assert format_count(count, is_rounded=True) == text
    assert format_count(count, is_rounded=False) == str(count)


def test_build_view_risks_grouped_and_sorted_by_gain() -> None:
    view = build_view(make_facts(make_summary()), "steward")
    assert [group.title for group in view.risks] == [
        "Find a person",
        "Recover a record",
        "Know who is in the release",
        "Learn a value",
    ]
    for group in view.risks:
        gains = [line.gain for line in group.lines]
        assert gains == sorted(gains, reverse=True)
    titles = [line.title for line in view.risks[0].lines]
    assert titles == ["Knows a person's full record", "Knows half of the columns"]


def test_build_view_surest_persons_named_in_title_sentence_and_tile() -> None:
    view = build_view(make_facts(make_summary()), "steward")
    line = replace(view.risks[0].lines[0], name="learned_linkage.few.rate", value=0.5)
    assert find_title(line.name) == "Learns from recognised rows, surest fiftieth"
    assert "of the surest fiftieth of the persons were found" in format_risk(line, is_rounded=False)
    assert build_risk_tile("Persons found", line, is_rounded=False).notes[0] == (
        "of the surest fiftieth"
    )


def test_find_title_every_scenario_fits_its_figure() -> None:
    for scenario in SCENARIO_STORIES:
        title = find_title(f"record_linkage.{scenario}.rate")
        assert title != find_title("record_linkage.rate")
        assert shorten(title, LABELS - 24) == title


def test_build_view_tiles_have_baseline_and_limit() -> None:
    persons, records, members, use, bound = build_view(make_facts(make_summary()), "steward").tiles
    assert (persons.title, persons.figure, persons.outcome) == (
        "Persons found",
        "10 in 1,000",
        "PASS",
    )
    assert persons.notes == ("without the release: 4 in 1,000", "limit: 54 in 1,000")
    assert records.figure == "7 in 1,000" and members.figure == "4 in 100"
    assert use.figure == "92 in 100" and "limit: at least 75 in 100" in use.notes
    assert bound.figure == "1,038" and "limit: 1,100" in bound.notes


def test_build_view_limits_name_who_set_them() -> None:
    lines = {line.check: line for line in build_view(make_facts(make_summary()), "steward").limits}
    assert (lines["record_linkage.rate"].set_by, lines["record_linkage.rate"].reason) == (
        "DPO",
        "1 in 20",
    )
    assert lines["required.record_linkage"].set_by == ""


def test_build_view_refused_failures_first() -> None:
    view = build_view(make_facts(make_refused()), "steward")
    assert view.head.tone == "fail" and [line.check for line in view.failures] == [
        "record_linkage.rate"
    ]
    assert view.tiles[0].figure == "all" and view.tiles[0].outcome == "FAIL"


def test_build_view_waiting_names_the_open_check() -> None:
    view = build_view(make_facts(make_waiting()), "steward")
    assert view.head.tone == "review"
    assert "earlier_refusals" in view.steps[0].text


@pytest.mark.parametrize(
    ("summary", "sentence"),
    [
        (make_summary(), "Published for partners: every limit was kept."),
        (make_summary(Stage.APPROVED), "Every limit was kept, but nothing was published yet."),
        (
            replace(make_waiting(), standing=Standing((), 1)),
            "Nothing was published; a reviewer decides.",
        ),
        (
            replace(make_waiting(), standing=Standing((), 0)),
            "Reviewers approved it, but nothing was published yet.",
        ),
        (make_summary(Stage.AUDITED), "wine-0001 is not finished and nothing was published."),
        (make_summary(Stage.ABANDONED), "wine-0001 was abandoned and nothing was published."),
    ],
)
def test_build_view_head_says_published_only_if_it_is(summary: Summary, sentence: str) -> None:
    view = build_view(make_facts(summary), "steward")
    assert view.head.sentence.startswith(sentence)
    assert view.steps


def test_build_view_data_counts_add_up() -> None:
    account = build_view(make_facts(make_summary()), "steward").data
    assert account is not None
    given, dropped, aside, released = (line.count for line in account.records)
    assert (given, dropped, aside, released) == (577, 7, 51, 519)
    assert given == dropped + aside + released
    assert account.records[1].why == "Empty cells: mood (7)."
    assert account.columns == (("x", "4", "0", "0"),) and account.unchanged == 1


@pytest.mark.parametrize(
    ("count", "shown"), [(0, "fewer than 10"), (9, "fewer than 10"), (10, "10")]
)
def test_build_view_cells_that_became_other_counted_from_ten_on(count: int, shown: str) -> None:
    validated = make_summary().validated
    assert validated is not None
    mood = Categorical("mood", ("calm", "other"))
    schema = replace(validated.schema, categorical=(mood,))
    changed = replace(validated, schema=schema, other={"mood": count})
    summary = make_summary(validated=changed)
    account = build_view(make_facts(summary), "steward").data
    assert account is not None and ("mood", "0", "0", shown) in account.columns
    for edition in ("steward", "recipients"):
        card = format_card(build_view(make_facts(summary), edition))
        assert f'became "other": {shown}.' in card.replace("\\", "")


def test_build_view_history_holds_all_releases() -> None:
    history = build_view(make_facts(make_summary()), "steward").history
    assert history is not None and history.ledger is not None
    assert [line.outcome for line in history.releases] == ["PUBLISHED", "REFUSED", "ABANDONED"]
    assert [line.risk for line in history.releases] == [0.0103, 1.0, None]
    assert [step.ln_total for step in history.ledger.steps] == [2.0, 2.0]  # the second was refused


@pytest.mark.parametrize(
    ("spent", "limit", "asked", "room"),
    [(2.0, 6.9, 2.0, 2), (2.0, 6.0, 2.0, 2), (7.0, 6.0, 2.0, 0), (2.0, None, 2.0, None),
     (None, 6.0, 2.0, None), (2.0, 6.0, 0.0, None)],
)  # fmt: skip
def test_count_room_releases_that_fit(
    spent: float | None, limit: float | None, asked: float, room: int | None
) -> None:
    assert count_room(spent, limit, asked) == room


def test_forecast_totals_ends_beyond_the_limit() -> None:
    history = build_view(make_facts(make_summary()), "steward").history
    assert history is not None and history.ledger is not None
    assert forecast_totals(history.ledger) == [2.0, 4.0, 6.0, 8.0]
    assert "2 more releases fit" in describe_room(history.ledger)
    assert "No limit" in describe_room(replace(history.ledger, ln_limit=None))


@pytest.mark.parametrize("last", ["PASS", "REVIEW", "FAIL"])
def test_combine_sites_limit_has_worst_outcome_of_a_site(last: Outcome) -> None:
    def make(name: str, outcome: Outcome, *broken: str) -> SiteFacts:
        return SiteFacts(name, 9, "", outcome, 0, broken, (), (), {}, "", "")

    broken = () if last == "PASS" else ("record_linkage.rate",)
    sites = SitesFacts("", (make("a", "PASS"), make("b", last, *broken)))
    found = combine_sites(sites, ("record_linkage.rate", "label.rate"))
    assert found == {"record_linkage.rate": last, "label.rate": "PASS"}
    judgement = replace(Judgement.of({}, ()), by_sites=found)
    assert judgement.find_outcome("record_linkage.rate") == last
