"""`ppdm init`: a release file for a table that has none yet."""

from __future__ import annotations

import getpass
import os
import re
from pathlib import Path

from flows.config.draft.text import Heading, release_text
from ppdm.cli.draft_summary import decisions, spoken
from ppdm.cli.progress import shown_progress
from ppdm.cli.release import read_file
from ppdm.cli.result import Answer
from ppdm_core.model.errors import BadInput
from warehouse.columns import Source

FARTHEST = 1  # folders upward that a relative path may take


def draft_file(source: Path, out: Path, table: str | None) -> Answer:
    """Writes a release file that `ppdm release` takes as it is, and says what to decide."""
    from flows.config.draft.profile import draft_source
    from warehouse.sources.guess import source_at

    check_target(out)
    found = source_at(str(source), table)
    with shown_progress():
        draft = draft_source(found)
    heading = Heading(
        dataset=dataset_name(found.path),
        owner=user_name(),
        source=found,
        path=path_from(out, found.path),
    )
    write_new(out, release_text(draft, heading), found)
    to_decide = decisions(draft)
    columns = [
        {"name": each.name, "role": each.column.role, "why": each.why} for each in draft.columns
    ]
    payload = {"file": str(out), "columns": columns, "decisions": to_decide}
    return Answer(spoken(out, draft, to_decide), payload)


def check_target(out: Path) -> None:
    if out.exists() or out.is_symlink():
        raise BadInput(
            f"{out.name} exists already.", file=str(out), remedy="Name a file that does not."
        )
    if not out.parent.is_dir():
        raise BadInput(
            f"The folder of {out.name} does not exist.", file=str(out), remedy="Make it first."
        )


def dataset_name(path: str) -> str:
    """The file's name, as far as names of datasets allow."""
    stem = os.path.basename(path).lower().removesuffix(".gz").rpartition(".")[0]
    plain = re.sub(r"[^a-z0-9]+", "_", stem).strip("_")
    named = plain if plain[:1].isalpha() else f"table_{plain}"
    return named[:40].strip("_")


def user_name() -> str:
    try:
        return getpass.getuser()
    except (ImportError, KeyError, OSError):  # as in a container without a user of that number
        return "to be decided"


def path_from(out: Path, path: str) -> str:
    """Relative paths move with the folder, so they are kept to what is near."""
    near = os.path.relpath(path, out.resolve().parent)
    return path if near.split(os.sep).count("..") > FARTHEST else near


def write_new(out: Path, text: str, source: Source) -> None:
    """All or nothing, checked as `ppdm release` would, and never over another file."""
    from warehouse.home import machine_errors, sync

    try:
        content = text.encode()
    except UnicodeEncodeError:
        raise BadInput(
            "The path of the source is not UTF-8.", file=str(out), remedy="Rename it."
        ) from None
    draft = out.with_name(f".{out.name}.{os.getpid()}.tmp")
    try:
        with machine_errors(out.parent):
            draft.write_bytes(content)
            sync(draft)
        check_text(draft, source)
        with machine_errors(out.parent):
            os.link(draft, out)  # unlike a rename, it fails where somebody was quicker
    finally:
        draft.unlink(missing_ok=True)


def check_text(draft: Path, source: Source) -> None:
    try:
        read_file(draft)
    except BadInput as error:
        raise BadInput(
            error.message, file=source.path, column=error.column, remedy=error.remedy
        ) from None
