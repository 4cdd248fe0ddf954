"""`ppdm init`: draft a release file for a table."""

from __future__ import annotations

import os
import re
from contextlib import ExitStack
from dataclasses import dataclass
from glob import has_magic
from pathlib import Path

from flows.config.draft.choices import Choices
from flows.config.draft.text import Heading, format_release_file
from ppdm.cli.draft_summary import format_draft, list_decisions
from ppdm.cli.home import check_new_file
from ppdm.cli.release_files import read_release_file
from ppdm.cli.replies.others import ColumnBody, InitReply
from ppdm.cli.result import CommandResult
from ppdm_core.model.errors import BadInput
from warehouse.buckets import is_url
from warehouse.columns import Source

MAX_PARENT_FOLDERS = 1  # that a relative path may go up


@dataclass(frozen=True)
class Decided:
    """What the steward has decided already; "" for what is open."""

    owner: str = ""
    audience: str = ""
    set_by: str = ""  # of the limits
    label: str | None = ""  # column; None: there is none
    record_id: str | None = ""  # column; None: there is none
    method: str = ""

    @property
    def choices(self) -> Choices:
        """What decides the columns and the method of the draft."""
        return Choices(self.label, self.record_id, self.method)


NOTHING_DECIDED = Decided()


def draft_file(
    source: Path | str,
    out: Path,
    table: str | None,
    decided: Decided = NOTHING_DECIDED,
    *,
    ask: bool = False,
) -> CommandResult:
    """Write a release file that `ppdm release` accepts unchanged; return what is left to decide.

    ``ask`` asks in the terminal for what is not decided.
    """
    from flows.config.draft.profile import draft_source
    from ppdm.cli.questions import ask_questions, check_terminal
    from warehouse.sources.guess import guess_source

    if ask:
        check_terminal()
    check_new_file(out)
    found = guess_source(str(source), table)
    draft = draft_source(found, decided.choices)
    if ask:
        guessed = decided.choices
        decided = ask_questions(decided, draft)
        if decided.choices != guessed:
            draft = draft_source(found, decided.choices)
    heading = Heading(
        dataset=suggest_dataset_name(found),
        owner=decided.owner,
        audience=decided.audience,
        set_by=decided.set_by,
        source=draft.source,
        path=choose_path(out, found.path),
    )
    write_new(out, format_release_file(draft, heading), found)
    decisions = list(list_decisions(draft, heading))
    columns = [
        ColumnBody(name=each.name, role=each.column.role, why=each.why) for each in draft.columns
    ]
    reply = InitReply(file=str(out), columns=columns, decisions=decisions)
    return CommandResult(format_draft(out, draft, decisions), reply.as_payload())


def suggest_dataset_name(source: Source) -> str:
    """Return the name of the file or table, reduced to what a dataset name allows."""
    name = source.name
    if has_magic(name):  # the folder says more
        name = os.path.basename(os.path.dirname(source.path))
    stem = name.lower().removesuffix(".gz")
    stem = stem.rpartition(".")[0 if source.path else 2] or stem
    plain = re.sub(r"[^a-z0-9]+", "_", stem).strip("_")
    name = plain if plain[:1].isalpha() else f"table_{plain}"
    return name[:40].strip("_")


def choose_path(out: Path, path: str) -> str:
    """Return a relative path to a source close to the release file, else the absolute one.

    A relative path stays valid when the folder is moved.
    """
    if not path or is_url(path):
        return path
    relative = os.path.relpath(path, out.resolve().parent)
    return path if relative.split(os.sep).count("..") > MAX_PARENT_FOLDERS else relative


def write_new(out: Path, text: str, source: Source) -> None:
    """Write a new file; remove it again if `ppdm release` would not accept it."""
    from warehouse.home import translate_disk_errors

    try:
        content = text.encode()
    except UnicodeEncodeError:
        raise BadInput(
            "The path of the source is not UTF-8.", file=str(out), remedy="Rename it."
        ) from None
    with ExitStack() as undo:
        with translate_disk_errors(out.parent), out.open("xb") as stream:
            undo.callback(out.unlink)
            stream.write(content)
        try:
            read_release_file(out)
        except BadInput as error:
            raise error.in_file(source.path) from None
        undo.pop_all()
