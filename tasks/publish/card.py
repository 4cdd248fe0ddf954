"""The card of a release: a summary on one page, written from the same view as the report."""

from __future__ import annotations

from pathlib import Path

from ppdm_core.model.shown_text import Markdown, escape_markdown, format_code
from tasks.publish.report.view import ReportView
from tasks.release_summary import Summary
from tasks.text_template import render_text

TEMPLATE = Path(__file__).with_name("card.md.j2")


def format_card(view: ReportView) -> str:
    """Return the card as Markdown.

    Whatever the template inserts is escaped, except what is Markdown already.
    """
    return render_text(
        TEMPLATE,
        {"code": format_code, "markdown": Markdown},
        finalize=escape_value,
        view=view,
    )


def escape_value(value: object) -> Markdown:
    """Return what the card writes for a value of the template."""
    return value if isinstance(value, Markdown) else escape_markdown(str(value))


def find_card(summary: Summary, view: ReportView) -> str:
    """Return the card as it was published; format it for a release that was not."""
    published = summary.folder / "card.md" if summary.folder else None
    if published and published.is_file():
        return published.read_text(encoding="utf-8")
    return format_card(view)
