"""`ppdm site` and `ppdm centre`: join, run and show a common release of several sites."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from rich.console import Group

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
from ppdm.cli.replies.sites import PartyReply
from ppdm.cli.result import CommandResult
from ppdm.cli.show import show_release
from ppdm.services.prefect_server import stop_orphaned_server, use_prefect_server
from ppdm_core.model.errors import BadInput, Undecided
from ppdm_core.sanitizers import Sanitizer
from tasks.context import ReleaseContext
from tasks.progress import Step, log_progress, start_step
from tasks.signing_key import load_author_key
from tasks.sites.exchange import read_party
from tasks.sites.model_error import read_test_rows
from tasks.sites.terms import check_common_release, check_intersection
from warehouse.home import Home
from warehouse.messages.membership import (
    Membership,
    check_pins,
    store_membership,
)
from warehouse.messages.roll import CENTRE
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
        check_common_release(context, len(sites), is_centre=True)
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
        if intersects:
            check_intersection(context, len(pins) - 1)
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
        return build_run_result(context, state, is_centre=is_centre)


def build_run_result(
    context: ReleaseContext, state: State[Any], *, is_centre: bool
) -> CommandResult:
    """Return how the common release ended for this party; raise the error that ended it."""
    outcome = state.result(raise_on_failure=False)
    if outcome not in (Stage.PUBLISHED, Stage.AWAITING_REVIEW):
        raise find_error(state)
    message = str(state.message)
    reply = PartyReply(dataset=context.dataset, outcome=str(outcome)).as_payload()
    if outcome == Stage.AWAITING_REVIEW:
        error = Undecided(message, remedy="Then run the same command again.")
        return CommandResult(make_text(message), reply, exit_code=error.exit_code, error=error)
    if is_centre:
        published = show_release(f"{context.dataset}/latest", Path(context.home))
        return CommandResult(Group(published.view, make_text(message)), reply)
    return CommandResult(make_text(message), reply)
