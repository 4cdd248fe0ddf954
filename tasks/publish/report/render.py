"""Write a view as one HTML page without script or outside request; same view, same bytes."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ppdm_core.model.shown_text import show_lines
from tasks.publish.report.columns import draw_columns
from tasks.publish.report.drawing import Figure
from tasks.publish.report.figures import draw_account, draw_exposure, draw_risks, draw_utility
from tasks.publish.report.history_figures import draw_ledger, draw_releases
from tasks.publish.report.released_figures import draw_correlations, draw_distributions
from tasks.publish.report.view import ReportView

if TYPE_CHECKING:
    from markupsafe import Markup

TEMPLATES = Path(__file__).with_name("templates")
SYMBOLS = {"pass": "✔", "review": "?", "fail": "✘", "neutral": "-"}
MARKS = {
    "PASS": "✔ within the limit",
    "REVIEW": "? a reviewer decides",
    "FAIL": "✘ limit broken",
    None: "- not judged",
}
SHARE = re.compile(r"[\d,]+ in [\d,]+\d")
GLOSSARY = (
    ("record", "The original values of one unit, usually a person."),
    ("release", "The perturbed copy of the records, made to be handed out."),
    ("attack", "A method that tries to learn private values from a release; the audit runs many."),
    ("without the release", "What the same attacker achieves by guessing, the baseline of a risk."),
    ("interval", "The range of values that are compatible with the measurement."),
    ("limit", "The largest or smallest accepted value, set by a person before the release."),
    ("verdict", "PASS, REVIEW (a person decides) or FAIL: the worst of all checks."),
    ("gamma", "The factor by which one released row can change the odds about a record."),
    ("ledger", "The sum of gamma over all releases, for the most exposed record."),
    ("self-test", "The proof, in every run, that the attacks notice leaks planted for them."),
)


def draw_figures(view: ReportView) -> dict[str, Figure | None]:
    """Return every figure of a view by name; None: the view has nothing to draw."""
    history = view.history
    return {
        "risks": draw_risks(view),
        "exposure": draw_exposure(view),
        "columns": draw_columns(view.column_exposure) if view.column_exposure else None,
        "releases": draw_releases(history) if history else None,
        "ledger": draw_ledger(history.ledger) if history and history.ledger else None,
        "utility": draw_utility(view),
        "distributions": draw_distributions(view.released) if view.released else None,
        "correlations": draw_correlations(view.released) if view.released else None,
        "account": draw_account(view.data) if view.data else None,
    }


def render_report(view: ReportView) -> str:
    """Return the page; texts of other people are escaped, and shown without control characters."""
    return render_template(
        "report.html.j2",
        ("report.css",),
        view=view,
        figures=draw_figures(view),
        symbols=SYMBOLS,
        marks=MARKS,
        glossary=GLOSSARY,
    )


def render_template(name: str, styles: Sequence[str], **values: Any) -> str:
    """Return a page of a template with style sheets, which its content security policy names."""
    import jinja2
    from markupsafe import Markup

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=show_value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["place"] = format_place
    environment.filters["unbroken"] = keep_shares_together
    style = "".join((TEMPLATES / each).read_text(encoding="utf-8") for each in styles)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return environment.get_template(name).render(
        style=Markup(style), style_hash=f"sha256-{digest}", **values
    )


def show_value(value: Any) -> Any:
    """Return a text without control characters or changes of direction; markup stays as it is."""
    return show_lines(value) if type(value) is str else value


def keep_shares_together(text: str) -> Markup:
    """Return a text as HTML in which no line ends within "5 in 100"."""
    from markupsafe import Markup, escape

    return Markup(SHARE.sub(r'<span class="share">\g<0></span>', str(escape(show_lines(text)))))


def format_place(value: float) -> str:
    """Return a coordinate with at most two decimals."""
    return f"{value:.2f}".rstrip("0").rstrip(".")
