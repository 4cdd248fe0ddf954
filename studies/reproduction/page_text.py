"""Parts of a page, as Markdown and as one HTML file."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

STYLE = """
:root { color-scheme: light dark; --text: #222; --back: #fff; --line: #ddd; --quiet: #666 }
@media (prefers-color-scheme: dark) {
  :root { --text: #ddd; --back: #181818; --line: #444; --quiet: #aaa }
}
body { font: 15px/1.45 system-ui, sans-serif; max-width: 76rem; margin: 2rem auto; padding: 0 1rem;
       color: var(--text); background: var(--back) }
h2 { margin-top: 2.5rem }
table { border-collapse: collapse; width: 100%; margin: 1rem 0 }
th, td { border-bottom: 1px solid var(--line); padding: .35rem .5rem; text-align: left;
         vertical-align: top; overflow-wrap: anywhere }
table.wide { table-layout: fixed }
table.wide th:nth-child(1) { width: 32% }
table.wide th:nth-child(4), table.wide th:nth-child(6) { width: 9% }
figure { margin: 1.5rem 0 }
figure svg { max-width: 100%; height: auto; background: #fff; border-radius: 4px }
figcaption { color: var(--quiet) }
@media (max-width: 50rem) {
  table.wide, table.wide tbody, table.wide tr, table.wide td { display: block; width: auto }
  table.wide tr:first-child { display: none }
  table.wide tr { border-bottom: 2px solid var(--line); padding: .5rem 0 }
  table.wide td { border: 0; padding: .1rem 0 }
  table.wide td:not(:first-child):not(:empty)::before {
    content: attr(data-label) ": "; color: var(--quiet) }
}
"""
MIN_WIDE_COLUMNS = 6  # a table of so many columns has one column on a phone


@dataclass(frozen=True)
class Heading:
    """A heading of a level."""

    level: int
    text: str


@dataclass(frozen=True)
class Paragraph:
    """Some sentences."""

    text: str


@dataclass(frozen=True)
class Image:
    """A picture, by its path from the page."""

    path: str
    title: str


@dataclass(frozen=True)
class Grid:
    """A table of text; a pair of ** marks what is bold."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]


Block = Heading | Paragraph | Image | Grid


def render_markdown(blocks: Sequence[Block]) -> Iterator[str]:
    """Yield the lines of a page in Markdown."""
    for block in blocks:
        match block:
            case Heading(level, text):
                yield f"{'#' * level} {text}"
            case Paragraph(text):
                yield text
            case Image(path, title):
                yield f"![{title}]({path})"
                yield ""
                yield f"*{title}*"
            case Grid(headings, rows):
                yield f"| {' | '.join(headings)} |"
                yield f"|{' --- |' * len(headings)}"
                for row in rows:
                    cells = (cell.replace("|", chr(92) + "|") for cell in row)
                    yield f"| {' | '.join(cells)} |"
        yield ""


def render_html(title: str, blocks: Sequence[Block], folder: Path) -> str:
    """Return a page as one HTML file, with the pictures of ``folder`` inside."""
    body = "\n".join(render_block(block, folder) for block in blocks)
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(title)}</title><style>{STYLE}</style>"
    )
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>{body}</body></html>\n'


def render_block(block: Block, folder: Path) -> str:
    """Return one part of a page as HTML."""
    match block:
        case Heading(level, text):
            return f"<h{level}>{render_inline(text)}</h{level}>"
        case Paragraph(text):
            return f"<p>{render_inline(text)}</p>"
        case Image(path, title):
            svg = (folder / path).read_text(encoding="utf-8")
            caption = f"<figcaption>{html.escape(title)}</figcaption>"
            return f"<figure>{svg[svg.index('<svg') :]}{caption}</figure>"
        case Grid(headings, rows):
            lines = ["".join(f"<th>{html.escape(each)}</th>" for each in headings)]
            for row in rows:
                cells = zip(headings, row, strict=True)
                lines.append("".join(render_cell(heading, cell) for heading, cell in cells))
            kind = ' class="wide"' if len(headings) >= MIN_WIDE_COLUMNS else ""
            return f"<table{kind}>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def render_cell(heading: str, text: str) -> str:
    """Return a cell of a table, with its heading for narrow screens."""
    return f'<td data-label="{html.escape(heading)}">{render_inline(text)}</td>'


def render_inline(text: str) -> str:
    """Return a text as HTML; pairs of ** mark what is bold, and backticks what is code."""
    marked = alternate(html.escape(text).split("**"), "b")
    return alternate(marked.split("`"), "code")


def alternate(pieces: Sequence[str], tag: str) -> str:
    """Return the pieces as one text, every second one with a tag."""
    return "".join(f"<{tag}>{each}</{tag}>" if i % 2 else each for i, each in enumerate(pieces))
