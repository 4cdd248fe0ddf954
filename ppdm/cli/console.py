"""What commands print: grids, panels, wrapped text, paths and options.

On a terminal, everything fits its width. In a file, a row of a grid is one line for `grep`, and
there are no colours; NO_COLOR is obeyed, too.
"""

from __future__ import annotations

import shlex
import shutil
import sys
import textwrap
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console, Group, RenderableType
from rich.constrain import Constrain
from rich.panel import Panel
from rich.segment import Segment, Segments
from rich.table import Table
from rich.text import Text

from ppdm_core.model.shown_text import show_line, show_lines

if TYPE_CHECKING:
    from ppdm_core.model.verdict import Outcome
    from tasks.release_summary import Summary

WIDTH = 100  # of sentences and panels
NO_LIMIT = 100_000  # columns

MARKS: dict[Outcome | None, tuple[str, str]] = {  # with its style
    "PASS": ("✓", "green"),
    "REVIEW": ("?", "yellow"),
    "FAIL": ("✗", "red"),
    None: ("", ""),
}
STYLES = {"good": "green", "bad": "red", "open": "yellow", "neutral": "blue"}
VERDICT_STYLES = {"PASS": "green", "REVIEW": "yellow", "FAIL": "red"}


def is_terminal() -> bool:
    """Return whether standard output is a terminal."""
    return sys.stdout.isatty()


def get_width(limit: int = WIDTH) -> int:
    """Return the width of the terminal, but at most ``limit``, which also holds for a file."""
    return min(limit, shutil.get_terminal_size().columns) if is_terminal() else limit


def make_text(text: str, style: str = "") -> Text:
    """Return a text on one line, which is wrapped when it is printed."""
    return Text(show_line(text), style=style)


def make_marked_text(text: str, outcome: Outcome | None) -> Text:
    """Return a text with the mark of an outcome at its end, if there is one."""
    mark, style = MARKS[outcome]
    return Text.assemble(show_line(text), (f" {mark}" if mark else "", style))


def make_grid(
    rows: Iterable[Sequence[RenderableType]],
    titles: Sequence[str] = (),
    *,
    right: Collection[int] = (),
    wrap: Collection[int] | None = None,
) -> Table:
    """Return aligned rows; only the columns ``wrap``, by default the last one, may be wrapped."""
    rows = list(rows)
    table = Table.grid(padding=(0, 2))
    table.show_header = bool(titles)
    count = len(rows[0]) if rows else len(titles)
    for i, title in enumerate(titles or [""] * count):
        table.add_column(
            title,
            header_style="bold",
            justify="right" if i in right else "left",
            no_wrap=i not in (wrap if wrap is not None else (count - 1,)),
            overflow="fold",
            vertical="top",
        )
    for row in rows:
        table.add_row(*(make_text(cell) if isinstance(cell, str) else cell for cell in row))
    return table


def make_panel(
    parts: Sequence[RenderableType], title: str, subtitle: str, style: str
) -> RenderableType:
    """Return a bordered panel of at most ``WIDTH`` columns with a coloured title."""
    heading = Text.assemble(
        (f" {show_line(title)} ", f"bold reverse {style}"), f" {show_line(subtitle)}"
    )
    panel = Panel(Group(*parts), title=heading, title_align="left", border_style=style)
    return Constrain(panel, WIDTH)


def make_console(*, is_plain: bool = False) -> Console:
    """Return the console of standard output; ``is_plain`` is for text without colours."""
    is_file = is_plain or not is_terminal()
    return Console(
        width=NO_LIMIT if is_file else None,
        no_color=True if is_plain else None,
        force_terminal=False if is_plain else None,
        markup=False,
        emoji=False,
        highlight=False,
    )


def render_text(view: RenderableType) -> str:
    """Return a view as text without colours, as it is written to a file."""
    if isinstance(view, str):
        return show_lines(view)
    console = make_console(is_plain=True)
    with console.capture() as capture:
        console.print(make_safe(console, view), end="")
    return "\n".join(line.rstrip() for line in capture.get().splitlines())


def print_view(view: RenderableType) -> None:
    """Print a view on standard output."""
    if isinstance(view, str) or not is_terminal():
        print(render_text(view))
        return
    console = make_console()
    console.print(make_safe(console, view), end="")


def make_safe(console: Console, view: RenderableType) -> RenderableType:
    """Return a view whose text can move no cursor: names and reasons may hold anything."""
    return Segments(
        [
            part if part.control else Segment(show_lines(part.text), part.style)
            for part in console.render(view)
        ]
    )


def format_lines(lines: Iterable[str]) -> str:
    """Return lines as one text; names and reasons in them cannot add another line."""
    return "\n".join(map(show_line, lines))


def wrap_text(text: str, first: str = "", rest: str | None = None) -> list[str]:
    """Return wrapped lines; ``first`` stands before the first line and ``rest`` before the others.

    By default the later lines are indented by as much as the first.
    """
    return textwrap.wrap(
        show_line(text),
        get_width(),
        initial_indent=first,
        subsequent_indent=" " * len(first) if rest is None else rest,
        break_long_words=False,
        break_on_hyphens=False,
    )


def wrap_item(text: str) -> list[str]:
    """Return a text as the wrapped lines of a list item."""
    return wrap_text(text, "  - ")


def format_home_of(summary: Summary) -> str:
    """Return the --home option that a release needs, or "" for the default home."""
    home = shorten_path(summary.home)
    return "" if home == ".ppdm" else f" --home {shlex.quote(home)}"


def format_home_option(home: Path | None) -> str:
    """Return the --home option for a path that was given, or ""."""
    return "" if home is None else f" --home {shlex.quote(str(home))}"


def shorten_path(path: Path) -> str:
    """Return a path relative to the working directory if it is below it."""
    path, here = path.absolute(), Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)
