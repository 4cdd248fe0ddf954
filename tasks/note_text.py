"""The one line in which a person gives a reason."""

from __future__ import annotations

from ppdm_core.model.errors import BadInput

MAX_NOTE_LETTERS = 1000


def check_line(option: str, text: str) -> str:
    """Return the text of an option without outer spaces; raise BadInput unless it is one line."""
    text = text.strip()
    if not text or len(text) > MAX_NOTE_LETTERS or not text.isprintable():
        raise BadInput(
            f"{option} takes one line of at most {MAX_NOTE_LETTERS} letters.",
            remedy="Give the reason in one sentence.",
        )
    return text
