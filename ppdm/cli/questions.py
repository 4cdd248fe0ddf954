"""The questions of `ppdm init --ask`, in the terminal.

Questions go to standard error, so that standard output holds the result alone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from ppdm_core.model.errors import BadInput
from ppdm_core.model.shown_text import show_line
from ppdm_core.settings.errors import check_known

if TYPE_CHECKING:
    from flows.config.draft.profile import Draft
    from ppdm.cli.init import Decided

LATER = "decide later"
NONE = "-"  # the answer for no column

Check = Callable[[str], None]


def check_terminal() -> None:
    """Raise BadInput if there is no terminal to ask in."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise BadInput(
            "--ask needs a terminal.",
            remedy="Give --owner, --audience, --set-by, --label and --method in place of it.",
        )


def ask_questions(decided: Decided, draft: Draft) -> Decided:
    """Ask for everything that is not decided; Enter takes the default, which the draft guessed."""
    print("Enter takes the answer in brackets.", file=sys.stderr)
    for field, question in (
        ("owner", "Who owns the release, as its author"),
        ("audience", "Who will receive it"),
        ("set_by", "Which person or body sets the limits"),
    ):
        if not getattr(decided, field):
            decided = replace(decided, **{field: ask_text(question, LATER, "")})
    names = [each.name for each in draft.columns if each.column.derivation is None]
    if decided.label == "":
        label = draft.label.name if draft.label else None
        answer = ask_column("Column of the class, released unchanged", label, names)
        decided = replace(decided, label=answer)
    if decided.record_id == "":
        question = "Column that names a record in every delivery"
        answer = ask_column(question, draft.record_id, names)
        decided = replace(decided, record_id=answer)
    if not decided.method:
        decided = replace(decided, method=ask_method(draft))
    return decided


def ask_column(question: str, guess: str | None, names: list[str]) -> str | None:
    """Return a column of the table, or None."""

    def check(answer: str) -> None:
        if answer != NONE:
            check_known("column", answer, names)

    default = NONE if guess is None else guess
    answer = ask_text(f"{question} ({NONE} for none)", default, default, check)
    return None if answer == NONE else answer


def ask_method(draft: Draft) -> str:
    """Return one of the methods that accept the features; "" for the usual one.

    Another label may change which one is usual.
    """
    from flows.config.draft.method import list_methods

    methods = list_methods([each.column for each in draft.columns])
    usual = draft.method.name
    question = "Method" if len(methods) == 1 else f"Method, one of {', '.join(methods)}"
    return ask_text(question, usual, "", lambda answer: check_known("method", answer, methods))


def ask_text(question: str, shown: str, default: str, check: Check = lambda answer: None) -> str:
    """Return the answer, or the default for an empty one; ask again until the check accepts it."""
    while True:
        prompt = f"{question} [{show_line(shown)}]: "
        print(prompt, end="", file=sys.stderr, flush=True)
        line = sys.stdin.readline()
        if not line:
            raise BadInput(
                "The input ended before every question was answered.",
                remedy="Run the command again; Enter takes the answer in brackets.",
            )
        answer = line.strip()
        if not answer:
            return default
        try:
            check(answer)
        except BadInput as error:
            print(show_line(str(error)), file=sys.stderr)
        else:
            return answer
