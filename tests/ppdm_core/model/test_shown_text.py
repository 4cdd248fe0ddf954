from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ppdm_core.model.errors import BadInput
from ppdm_core.model.shown_text import (
    Markdown,
    escape_markdown,
    format_code,
    show_line,
    show_lines,
)
from ppdm_core.model.verdict import Finding
from tests.support.hostile_text import HOSTILE, is_safe_line, list_structure, read_text

PLACES = ("{}", "For {}, by x.", "- {}", "- `x` is worst for {}: 0.5.", "1. x {}", "# {}")
TABLE = "| a | b |\n| --- | --- |\n| {} | 1 |\n"
MARKS = st.text("#*_`~<>[]()|!&;:=+-.\\$ \n\t1ab\u202e\x1b", max_size=25) | st.text(max_size=20)


def test_show_line_ordinary_text_unchanged() -> None:
    for text in (
        "",
        "Dr. Müller-Lüdenscheid (DPO), 5 % <x>",
        "\u0646\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
        "日本語",
    ):
        assert show_line(text) == text


def test_show_line_control_characters_visible() -> None:
    assert show_line("a\nb\tc\r\nd") == "a b c  d"
    assert show_line("\x1b[31mPASS\u202e\x00\udcff") == "\\x1b[31mPASS\\u202e\\x00\\udcff"
    assert show_lines("a\x1b\n\nb") == "a\\x1b\n\nb"


@pytest.mark.parametrize("what", HOSTILE)
def test_show_line_hostile_text_one_safe_line(what: str) -> None:
    line = show_line(HOSTILE[what])
    assert is_safe_line(line) and show_line(line) == line


def test_escape_markdown_ordinary_text_unchanged() -> None:
    for text in (
        "Dr. Smith-Jones (DPO): 1 in 20 at most, R&D, see knn_accuracy.",
        "-0.1",
        "0.05 to 0.1",
        "at most 0.4 above the baseline",
        ", ",
        "1,000 records = 5 %",
    ):
        assert escape_markdown(text) == text


def test_escape_markdown_markdown_kept() -> None:
    assert escape_markdown(Markdown("**x**")) == "**x**"
    assert escape_markdown(escape_markdown("**x**")) == "\\*\\*x\\*\\*"


def check_shown_as_text(text: str) -> None:
    """In every place of a page the text adds no structure, and is seen as it is."""
    shown, expected = escape_markdown(text), " ".join(show_line(text).split())
    assert is_safe_line(shown)
    for place in (*PLACES, TABLE):
        page, control = place.replace("{}", f"x {shown}"), place.replace("{}", "x y")
        assert list_structure(page) == list_structure(control), place
        assert expected in read_text(page) or not expected
    for place in ("- {}", "{}"):  # where the text itself begins the line
        if expected:
            page, control = place.replace("{}", shown), place.replace("{}", "y")
            assert list_structure(page) == list_structure(control), place


@pytest.mark.parametrize("what", HOSTILE)
def test_escape_markdown_hostile_text_shown_as_text(what: str) -> None:
    check_shown_as_text(HOSTILE[what])


@pytest.mark.extended
@given(MARKS)
@example("\\")
@example("_a_b_")
@settings(max_examples=100, deadline=None)
def test_escape_markdown_any_text_shown_as_text(text: str) -> None:
    check_shown_as_text(text)


@pytest.mark.parametrize("what", HOSTILE)
def test_format_code_hostile_text_one_code_span(what: str) -> None:
    page = f"x {format_code(HOSTILE[what])} y"
    assert list_structure(page) == list_structure("x `y` y")
    assert " ".join(show_line(HOSTILE[what]).split()) in read_text(page)
    assert format_code("knn_accuracy") == "`knn_accuracy`"


@pytest.mark.parametrize("what", HOSTILE)
def test_errors_and_findings_hostile_name_one_line(what: str) -> None:
    error = BadInput(f"Column '{HOSTILE[what]}' is missing.", remedy=f"Add {HOSTILE[what]}.")
    assert is_safe_line(str(error)) and is_safe_line(error.message)
    assert is_safe_line(Finding("x", "FAIL", f"Limit ({HOSTILE[what]}).").why)
