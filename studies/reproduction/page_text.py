"""Parts of a page, as Markdown and as one HTML file."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; max-width: 76rem; margin: 2rem auto; padding: 0 1rem;
       color: #222; background: #fff }
table { border-collapse: collapse; width: 100%; margin: 1rem 0 }
svg { max-width: 100%; height: auto }
th, td { border-bottom: 1px solid #ddd; padding: .35rem .5rem; text-align: left;
         vertical-align: top }
"""


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
    head = f'<meta charset="utf-8"><title>{html.escape(title)}</title><style>{STYLE}</style>'
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
            lines += ["".join(f"<td>{render_inline(cell)}</td>" for cell in row) for row in rows]
            return f"<table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def render_inline(text: str) -> str:
    """Return a text as HTML; pairs of ** mark what is bold."""
    pieces = html.escape(text).split("**")
    return "".join(f"<b>{each}</b>" if i % 2 else each for i, each in enumerate(pieces))
