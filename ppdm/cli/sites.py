"""`ppdm site` and `ppdm centre`: join, run and show a common release of several sites."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType

from flows.config.context import build_checked_context
from flows.config.release_file import ReleaseFile, load
from ppdm.cli.console import make_grid, make_text
from ppdm.cli.flow_runs import (
    disable_heartbeats,
    find_error,
    preload_imports,
    write_defect_reports,
)
from ppdm.cli.release_files import name_file, read_release_file
from ppdm.cli.replies.sites import MessageBody, PartyReply
from ppdm.cli.result import CommandResult
from ppdm.services.prefect_server import stop_orphaned_server, use_prefect_server
from ppdm_core.model.errors import BadInput, Undecided
from ppdm_core.sanitizers import Sanitizer
from tasks.context import ReleaseContext
from tasks.progress import Step, log_progress, start_step
from tasks.signing_key import load_author_key
from tasks.sites.exchange import read_party
from tasks.sites.model_error import read_test_rows
from tasks.sites.pool_review import find_open_pool
from tasks.sites.terms import check_common_release
from warehouse.home import Home
from warehouse.messages.membership import (
    RELEASE_FILE,
    Membership,
    check_pins,
    exchange_folder,
    find_ended,
    find_membership,
    find_session,
    store_membership,
)
from warehouse.messages.roll import CENTRE, ROLL_NAME, parse_roll
from warehouse.messages.session import list_headers
from warehouse.messages.shared_folder import check_new_root
from warehouse.stages import Stage

if TYPE_CHECKING:
    from prefect import State


def read_centre_file(path: Path) -> tuple[ReleaseFile, ReleaseContext]:
    """Return the release file of the centre, whose source is not read."""
    file = load(path)
    with name_file(path):
        return file, build_checked_context(file)


def find_fingerprint(context: ReleaseContext) -> str:
    """Return the fingerprint of the home's key, which is made if there is none."""
    from ppdm_core.model.manifest import key_fingerprint
    from warehouse.integrity.home_key import home_key

    Home(Path(context.home)).create()
    with context.open_store().transaction("fingerprint") as db:
        return key_fingerprint(home_key(db).signing().public_key())


def split_sites(given: Sequence[str]) -> list[tuple[str, str]]:
    """Return name and fingerprint of each NAME=FINGERPRINT."""
    pairs = [each.partition("=") for each in given]
    for name, equals, _ in pairs:
        if not equals:
            raise BadInput(
                f"'{name}' does not have the form NAME=FINGERPRINT.",
                remedy="For example: --site north=0123456789abcdef0123456789abcdef",
            )
    return [(name, fingerprint) for name, _, fingerprint in pairs]


def prepare_centre(path: Path, folder: Path, sites: Sequence[str]) -> CommandResult:
    """Store the sites of a common release and their fingerprints in the home of the centre."""
    _, context = read_centre_file(path)
    with name_file(path):
        check_common_release(context, len(sites))
    own = find_fingerprint(context)
    pins = check_pins([(CENTRE, own), *split_sites(sites)])
    member = Membership(CENTRE, context.dataset, find_root(folder), pins)
    return store_party(path, context, member, own)


def join_release(
    path: Path,
    name: str,
    folder: Path,
    centre: str,
    sites: Sequence[str],
    test: Path | None,
    *,
    intersects: bool = False,
) -> CommandResult:
    """Store the parties of a common release and their fingerprints in the home of a site."""
    _, context = read_release_file(path)
    own = find_fingerprint(context)
    others = [pair for pair in split_sites(sites) if pair != (name, own)]
    pins = check_pins([(CENTRE, centre), (name, own), *others])
    with name_file(path):
        sanitizer = check_common_release(context, len(pins) - 1)
    if test is not None:
        check_test_rows(test, context, sanitizer)
    test_file = "" if test is None else str(test.absolute())
    shared = find_root(folder)
    member = Membership(name, context.dataset, shared, pins, test_file, intersects)
    return store_party(path, context, member, own)


def check_test_rows(test: Path, context: ReleaseContext, sanitizer: Sanitizer) -> None:
    """Raise BadInput unless classifiers of the pool can be tested on these rows."""
    if not test.is_file():
        raise BadInput(
            f"The test rows {test} do not exist.", file=str(test), remedy="Check the path."
        )
    if not sanitizer.keeps_columns:
        raise BadInput(
            f"Rows by method '{context.method}' have other columns than the test rows, so that "
            "classifiers of them cannot be tested.",
            remedy="Leave out --test.",
        )
    read_test_rows(test, context)


def find_root(folder: Path) -> str:
    """Return the absolute path of the shared folder, which must exist."""
    return str(check_new_root(folder))


def store_party(
    path: Path, context: ReleaseContext, member: Membership, fingerprint: str
) -> CommandResult:
    """Store how a home takes part, and say what comes next."""
    store_membership(Home(Path(context.home)), member)
    kind = "centre" if member.name == CENTRE else "site"
    lines = [
        *list_party(member, fingerprint),
        ("dataset", f"{context.dataset}, method {context.method}"),
        ("next", f"ppdm {kind} run {quote(str(path))}, when all parties have joined"),
    ]
    reply = PartyReply(**describe_party(member, fingerprint))
    return CommandResult(make_grid(lines), reply.as_payload())


def describe_party(member: Membership, fingerprint: str) -> dict[str, Any]:
    """Return how a home takes part, as the fields of a reply."""
    return {
        "party": member.name,
        "dataset": member.dataset,
        "fingerprint": fingerprint,
        "folder": member.shared,
        "sites": {name: member.pins[name] for name in member.sites},
    }


def list_party(member: Membership, fingerprint: str) -> list[tuple[str, str]]:
    """Return how a home takes part, as lines."""
    return [
        ("this home", f"'{member.name}', fingerprint {fingerprint}"),
        ("shared folder", member.shared),
        *((f"pinned {name}", pin) for name, pin in member.pins.items() if name != member.name),
    ]


def run_party(path: Path, wait: float, *, is_centre: bool) -> CommandResult:
    """Run the flow of this party to the end of the common release."""
    file, context = read_centre_file(path) if is_centre else read_release_file(path)
    home = Path(context.home)
    Home(home).create()
    with name_file(path):
        read_party(context, is_centre=is_centre)
    load_author_key(home)
    stop_orphaned_server(home)
    start_step(Step.START)
    with (
        write_defect_reports(home),
        use_prefect_server(home, log_progress, meanwhile=preload_imports),
        disable_heartbeats(),
    ):
        from flows.sites import centre, site

        run = centre if is_centre else site
        state: State[Any] = run(file, wait=wait, return_state=True)
    with name_file(path):
        return build_run_result(context, state)


def build_run_result(context: ReleaseContext, state: State[Any]) -> CommandResult:
    """Return how the common release ended for this party; raise the error that ended it."""
    outcome = state.result(raise_on_failure=False)
    if outcome not in (Stage.PUBLISHED, Stage.AWAITING_REVIEW):
        raise find_error(state)
    message = str(state.message)
    reply = PartyReply(dataset=context.dataset, outcome=str(outcome)).as_payload()
    if outcome == Stage.AWAITING_REVIEW:
        error = Undecided(message, remedy="Then run the same command again.")
        return CommandResult(make_text(message), reply, exit_code=error.exit_code, error=error)
    return CommandResult(make_text(message), reply)


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
        lines.append(("to decide", f"the pool of all sites: {command}"))
    return lines


def render_status(
    lines: Sequence[tuple[str, str]], messages: Sequence[MessageBody]
) -> RenderableType:
    """Return the state of a party as lines, and its messages as a grid."""
    rows = [(each.kind, each.sender, each.receiver, str(each.number)) for each in messages]
    if not rows:
        return Group(make_grid(lines), make_text("No message of this release yet."))
    return Group(make_grid(lines), make_grid(rows, ("message", "from", "to", "number")))
