"""The card of a release: what recipients and stewards read about it.

``card.md.j2`` holds its text, and ``CardView`` what the text needs beyond the stored facts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, TypeVar

from ppdm_core.audit.disclosure_rounding import round_report, round_up
from ppdm_core.metrics import METRICS, Metric
from ppdm_core.metrics.deterioration import Deterioration
from ppdm_core.model.score import AuditReport, Score
from ppdm_core.model.shown_text import Markdown, escape_markdown, format_code
from tasks.context import ReleaseContext
from tasks.release_summary import Summary
from tasks.text_template import render_text

TEMPLATE = Path(__file__).with_name("card.md.j2")
Kind = Literal["privacy", "utility"]
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class CardView:
    """The facts of a release as the card shows them."""

    context: ReleaseContext
    summary: Summary

    @cached_property
    def report(self) -> AuditReport:
        """The report in bands: exact figures are not for outsiders."""
        return round_report(self.summary.judged.report, self.context.policy.attacker.epsilon)

    @property
    def columns(self) -> str:
        """The first and the last released column."""
        names = self.summary.judged.sanitized.public.names
        shown = dict.fromkeys((format_code(names[0]), format_code(names[-1])))
        return Markdown(" to ".join(shown))

    @property
    def repeated_share(self) -> float:
        """The share of the records that repeat an earlier one, in bands."""
        validated = self.summary.judged.validated
        return round_up(validated.repeated_rows / validated.n)

    @property
    def judged_names(self) -> set[str]:
        return {finding.check for finding in self.summary.judged.verdict.findings}

    def list_scores(self, kind: Kind) -> list[Score]:
        """Return the scores of privacy or of utility."""
        return [score for score in self.report.scores if score.kind == kind]

    def list_utility(self) -> Iterator[tuple[Score, Metric, Score | None]]:
        """Yield each utility score, its metric, and how much less it is than on the original."""
        scores = {score.name: score for score in self.list_scores("utility")}
        for name, score in scores.items():
            if "." not in name:
                yield score, METRICS[name], scores.get(f"{name}.{Deterioration.name}")

    def list_notes(self, kind: Kind) -> Iterator[tuple[str, Markdown]]:
        """Yield the details that attacks and metrics report of their own work."""
        for score in self.list_scores(kind):
            notes = [f"{name.replace('_', ' ')} {value:.3g}" for name, value in score.notes.items()]
            if score.candidate in METRICS:
                notes.append(Markdown(f"that of {format_code(score.candidate)}"))
            if notes:
                yield score.name, Markdown(", ".join(map(escape_markdown, notes)))

    def select(self, kind: Kind, audits: Mapping[str, T]) -> Iterator[tuple[str, T]]:
        """Yield the audits that measure privacy, or those that measure utility."""
        for name, value in audits.items():
            if (METRICS[name].kind if name in METRICS else "privacy") == kind:
                yield name, value


def format_card(context: ReleaseContext, summary: Summary) -> str:
    """Return the card as Markdown; it holds the same facts as the manifest, in words.

    Whatever the template inserts is escaped, except what is Markdown already.
    """
    return render_text(
        TEMPLATE,
        {"figure": format_figure, "code": format_code, "markdown": Markdown},
        finalize=escape_value,
        card=CardView(context, summary),
        context=context,
        summary=summary,
        facts=summary.judged.sanitized,
        verdict=summary.judged.verdict,
        ledger=summary.ledger,
    )


def escape_value(value: object) -> Markdown:
    """Return what the card writes for a value of the template."""
    return value if isinstance(value, Markdown) else escape_markdown(str(value))


def find_card(context: ReleaseContext, summary: Summary) -> str:
    """Return the card as it was published; format it for a release that was not."""
    published = summary.folder / "card.md" if summary.folder else None
    if published and published.is_file():
        return published.read_text(encoding="utf-8")
    return format_card(context, summary)


def format_figure(value: float | None) -> str:
    """Return a figure in three digits, or nothing."""
    return "" if value is None else f"{value:.3g}"
