"""Text that tries to be more than text, and the structure of a page that shows it."""

from __future__ import annotations

from collections.abc import Iterator

from markdown_it import MarkdownIt
from markdown_it.token import Token

HOSTILE = {
    "heading": "x\n\n# PASS\n\nEvery check passed.",
    "heading at the start": "# PASS",
    "underlined heading": "PASS\n====",
    "rule": "---",
    "item": "- PASS",
    "number": "1. PASS",
    "quote": "> PASS",
    "code block": "```\nPASS\n```",
    "indented": "      PASS",
    "cell": "x | PASS | y",
    "row": "x |\n| PASS | 0 | 0 | 0 | 0 |",
    "backticks": "`` ` PASS ``` x",
    "emphasis": "**PASS** _PASS_ ~~FAIL~~",
    "script": "<script>alert(1)</script><b>PASS</b><!-- x -->",
    "entity": "&lt;b&gt; &#35; PASS",
    "link": "[PASS](javascript:alert(1)) ![x](http://x.example/y) <http://x.example>",
    "reference": "[PASS]\n\n[PASS]: http://x.example",
    "backslash": "\\# \\`PASS\\` \\",
    "colour": "\x1b[31mPASS\x1b[0m \x1b]8;;http://x.example\x07x\x1b]8;;\x07",
    "rich": "[bold red]PASS[/] [link=http://x.example]x[/link]",
    "cursor": "FAIL\r\x1b[2K\x08\x08PASS\x7f\x9b2J",
    "right to left": "\u202eSSAP\u202c \u2066x\u2069\u200f",
    "separators": "x\u2028# PASS\u2029y\x85z\x0b# PASS\x0c",
    "null": "PASS\x00\ufeff\udcff",
}
# Tables and strikethrough, and HTML as it is: the most that a page may do with a text.
READER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])


def list_tokens(page: str) -> Iterator[Token]:
    """Yield every token of a page, also those inside paragraphs and cells."""
    for token in READER.parse(page):
        yield token
        yield from token.children or ()


def list_structure(page: str) -> list[tuple[str, str]]:
    """Return all that a page contains except plain text: headings, tables, code, links, HTML."""
    plain = ("text", "inline", "softbreak", "text_special")
    return [(token.type, token.tag) for token in list_tokens(page) if token.type not in plain]


def read_text(page: str) -> str:
    """Return the text of a page as a reader sees it, with single spaces."""
    return " ".join(
        "".join(
            token.content if token.type != "softbreak" else " "
            for token in list_tokens(page)
            if token.type != "inline"
        ).split()
    )


def is_safe_line(text: str) -> bool:
    """Return whether a text is one line that moves no cursor and changes no direction."""
    return all(letter.isprintable() or letter in "\u200c\u200d" for letter in text)
