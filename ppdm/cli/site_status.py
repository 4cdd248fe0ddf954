"""`ppdm site status` and `ppdm centre status`: how a home takes part, and the messages so far."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Group, RenderableType

from ppdm.cli.console import make_grid, make_text
from ppdm.cli.release_files import read_release_file
from ppdm.cli.replies.sites import MessageBody, PartyReply
from ppdm.cli.result import CommandResult
from ppdm.cli.sites import describe_party, find_fingerprint, list_party, read_centre_file
from tasks.context import ReleaseContext
from tasks.sites.pool_review import find_open_pool
from warehouse.home import Home
from warehouse.messages.membership import (
    RELEASE_FILE,
    exchange_folder,
    find_ended,
    find_membership,
    find_session,
)
from warehouse.messages.roll import ROLL_NAME, parse_roll
from warehouse.messages.session import list_headers


def show_status(path: Path, *, is_centre: bool) -> CommandResult:
    """Return the fingerprint of this home, the pinned ones, and the messages of the session."""
    _, context = read_centre_file(path) if is_centre else read_release_file(path)
    fingerprint = find_fingerprint(context)
    home = Home(Path(context.home))
    member = find_membership(home, context.dataset)
    if member is None:
        command = "centre init" if is_centre else "site join"
        lines = [("fingerprint", fingerprint), ("next", f"ppdm {command} --help")]
        reply = PartyReply(dataset=context.dataset, fingerprint=fingerprint)
        return CommandResult(make_grid(lines), reply.as_payload())
    session = find_session(home, context.dataset)
    folder = exchange_folder(home, context.dataset) / session
    headers = list_headers(folder)
    roll = parse_roll((folder / ROLL_NAME).read_bytes()) if (folder / ROLL_NAME).exists() else None
    last = find_ended(home, context.dataset, f"{int(session) - 1:04d}")
    reply = PartyReply(
        **describe_party(member, fingerprint),
        session=session,
        roll=roll.digest if roll else None,
        messages=[
            MessageBody(
                kind=each.kind, sender=each.sender, receiver=each.receiver, number=each.number
            )
            for each in headers
        ],
        last_outcome=last["outcome"] if last else None,
        in_review=find_pool_in_review(context, folder),
    )
    lines = [*list_party(member, fingerprint), *list_session(reply)]
    return CommandResult(render_status(lines, reply.messages or ()), reply.as_payload())


def find_pool_in_review(context: ReleaseContext, folder: Path) -> str | None:
    """Return the release of this site if the pool with it waits for reviewers of this site."""
    path = folder / RELEASE_FILE
    if not path.exists():
        return None
    release_id = path.read_text()
    with context.open_store().transaction("status") as db:
        return release_id if find_open_pool(db, release_id) else None


def list_session(reply: PartyReply) -> list[tuple[str, str]]:
    """Return the state of the release that is under way, as lines."""
    lines = [
        ("release", f"{reply.session}, {'roll signed' if reply.roll else 'no roll yet'}"),
        ("last release", reply.last_outcome or "none"),
    ]
    if reply.in_review:
        command = f"ppdm decide {reply.in_review} --approve --note WHY (or --reject)"
        lines.append(("to decide", f"the common release: {command}"))
    return lines


def render_status(
    lines: Sequence[tuple[str, str]], messages: Sequence[MessageBody]
) -> RenderableType:
    """Return the state of a party as lines, and its messages as a grid."""
    rows = [(each.kind, each.sender, each.receiver, str(each.number)) for each in messages]
    if not rows:
        return Group(make_grid(lines), make_text("No message of this release yet."))
    return Group(make_grid(lines), make_grid(rows, ("message", "from", "to", "number")))
