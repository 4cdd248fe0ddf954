"""Text of other people as it is shown: one line without control characters, and no markup.

Owners, audiences, reasons, names of columns and files may hold anything. ``show_line`` is for
terminals, logs and plain cells, ``escape_markdown`` for all that is rendered as Markdown. JSON
needs neither.
"""

from __future__ import annotations

import re

JOINERS = "\u200c\u200d"  # invisible, and needed to write some languages
# An underscore inside a word does not start emphasis.
# "#" may also end a heading.
INLINE_MARKUP = re.compile(r"[\\`*\[\]|~$]|#(?=#*\s*$)|(?<![^\W_])_|_(?![^\W_])")
ENTITY = re.compile(r"&(?=#?\w+;)")
# Headings, items, rules: only where a text begins, because it has one line.
BLOCK_MARKUP = re.compile(r"^(\s*)(#{1,6}(?=\s|$)|[-+](?=\s|$)|[-=]+(?=\s*$))")
NUMBERED_ITEM = re.compile(r"^(\s*\d{1,9})([.)])(?=\s|$)")


class Markdown(str):
    """Text that is Markdown already."""

    __slots__ = ()


def show_line(text: str) -> str:
    """Return a text on one line; control characters and changes of direction become visible."""
    return text if text.isprintable() else "".join(map(_show_letter, text))


def show_lines(text: str) -> str:
    """Return a text of several lines, each as ``show_line`` returns it."""
    return "\n".join(map(show_line, text.split("\n")))


def _show_letter(letter: str) -> str:
    if letter.isprintable() or letter in JOINERS:
        return letter
    return " " if letter.isspace() else letter.encode("unicode_escape").decode()


def escape_markdown(text: str) -> Markdown:
    """Return a text on one line that Markdown shows as it is; text that is Markdown is kept."""
    if isinstance(text, Markdown):
        return text
    line = INLINE_MARKUP.sub(r"\\\g<0>", show_line(text))
    line = ENTITY.sub("&amp;", line).replace("<", "&lt;").replace(">", "&gt;")
    line = re.sub(r"^\s{2,}", " ", line)  # more would begin a block of code
    return Markdown(NUMBERED_ITEM.sub(r"\1\\\2", BLOCK_MARKUP.sub(r"\1\\\2", line)))


def format_code(text: str) -> Markdown:
    """Return a text on one line in the typeface of code, whatever backticks it holds."""
    line = show_line(text)
    runs = [len(run) for run in re.findall("`+", line)]
    fence = "`" * (1 + max(runs, default=0))
    space = " " if runs else ""
    return Markdown(f"{fence}{space}{line}{space}{fence}")
