"""Which columns drive the risk, in the steward's edition."""

from __future__ import annotations

from dataclasses import replace

from ppdm_core.model.column_risks import ColumnRisks
from tasks.publish.report.build import build_view
from tasks.publish.report.columns import MAX_DRAWN_COLUMNS, build_columns, draw_columns
from tasks.publish.report.render import render_report
from tests.support.report_facts import COLUMNS, make_facts, make_summary
from warehouse.stage_facts import ColumnFacts


def render(facts: ColumnFacts | None) -> str:
    return render_report(build_view(replace(make_facts(make_summary()), columns=facts), "steward"))


def test_build_columns_largest_difference_first() -> None:
    exposure = build_columns(COLUMNS, "wine-0001")
    assert exposure is not None
    assert [line.column for line in exposure.lines] == ["x", "y"]
    assert "found 41 in 100." in exposure.sentence and "Without 1 column," in exposure.sentence
    figure = draw_columns(exposure)
    assert figure is not None and len(figure.drawings) == 2
    assert figure.rows[0] == ("x", "5.1 %", "36.1 %", "31.0 % to 41.0 %")


def test_draw_columns_no_measurable_difference_table_only() -> None:
    assert COLUMNS.risks is not None
    risks = replace(COLUMNS.risks, columns=COLUMNS.risks.columns[:1])
    exposure = build_columns(ColumnFacts(risks), "wine-0001")
    assert exposure is not None and "too small to be measured" in exposure.sentence
    figure = draw_columns(exposure)
    assert figure is not None and not figure.drawings and len(figure.rows) == 1


def test_draw_columns_many_columns_largest_drawn() -> None:
    assert COLUMNS.risks is not None
    line = COLUMNS.risks.columns[1]
    many = tuple(replace(line, column=f"c{i:03d}") for i in range(216))
    facts = ColumnFacts(ColumnRisks(519, 0.4, many))
    exposure = build_columns(facts, "wine-0001")
    assert exposure is not None
    figure = draw_columns(exposure)
    assert figure is not None and len(figure.rows) == 216
    labels = [mark for mark in figure.drawings[0].marks if getattr(mark, "style", "") == "label"]
    assert len(labels) == MAX_DRAWN_COLUMNS
    assert len(render(facts).encode()) < 400_000


def test_render_report_columns_not_measured_says_how_to_ask() -> None:
    page = render(ColumnFacts(None, "It would take about 90 s."))
    assert "This was not measured. It would take about 90 s." in page
    assert "ppdm report wine-0001 --columns" in page
    assert "Which columns drive the risk" not in render(None)
