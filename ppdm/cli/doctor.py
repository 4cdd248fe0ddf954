"""`ppdm doctor`: report what is running, stuck or missing in a home, and the remedy."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from ppdm.cli.console import format_home_option, format_lines, make_grid, make_text
from ppdm.cli.home import check_home
from ppdm.cli.replies.others import DoctorReply, RemarkBody
from ppdm.cli.result import CommandResult
from ppdm.services.local_servers import SERVER_NAMES
from ppdm.services.prefect_server import stop_orphaned_server
from ppdm.services.processes import read_record
from ppdm_core.model.errors import BadInput, MachineTrouble, Refused
from tasks.environment import choose_home
from warehouse.home import Home, is_shared
from warehouse.locks import read_holder
from warehouse.stages import FINISHED, Stage

if TYPE_CHECKING:
    from rich.table import Table

    from warehouse.database import Store

TIMEOUT_SECONDS = 10.0  # for the warehouse; a release may be writing to it


@dataclass(frozen=True)
class Remark:
    """One finding about a home."""

    about: str
    text: str
    remedy: str | None = None  # None: nothing is wrong
    is_urgent: bool = True  # False: advice, which does not change the exit code

    @property
    def is_trouble(self) -> bool:
        """Whether the home needs care now."""
        return self.remedy is not None and self.is_urgent


def examine_home(home: Path | None) -> CommandResult:
    """Check servers, folders, hooks, locks, keys, history and runs; exit code 5 if one needs care.

    A key without a backup and a release that awaits review are not trouble.
    """
    root = choose_home(home)
    check_home(root)
    stop_orphaned_server(root)
    remarks = [
        *check_servers(root),
        *check_cluster(root),
        *check_folders(Home(root)),
        *check_home_hooks(Home(root)),
        *check_locks(Home(root)),
        *check_warehouse(Home(root)),
    ]
    wrong = [remark for remark in remarks if remark.is_trouble]
    advice = sum(remark.remedy is not None for remark in remarks) - len(wrong)
    trouble = MachineTrouble(wrong[0].text, remedy=wrong[0].remedy) if wrong else None
    heading = make_text(f"Home {root}: {format_counts(len(wrong), advice)}", "bold")
    reply = DoctorReply(
        home=str(root), remarks=[RemarkBody(**asdict(remark)) for remark in remarks]
    )
    view = Group(heading, render_remarks(remarks))
    return CommandResult(view, reply.as_payload(), exit_code=5 if wrong else 0, error=trouble)


def format_counts(troubles: int, advice: int) -> str:
    """Return how many things need a look, and how many are advice."""
    if not troubles and not advice:
        return "nothing needs a look."
    needs = "nothing needs" if not troubles else "1 thing needs"
    needs = needs if troubles < 2 else f"{troubles} things need"
    return f"{needs} a look{f', {advice} to do when you can' if advice else ''}."


def render_remarks(remarks: Sequence[Remark]) -> Table:
    """Return one row for each remark, with its remedy below; trouble first."""
    rows = []
    for remark in sorted(remarks, key=lambda each: (not each.is_trouble, each.remedy is None)):
        mark, style = ("LOOK", "red") if remark.is_trouble else ("OPEN", "yellow")
        if remark.remedy is None:
            mark, style = "ok", "green"
        words = Text(format_lines(filter(None, (remark.text, remark.remedy))))
        rows.append((make_text(mark, style), remark.about, words))
    return make_grid(rows)


def check_servers(root: Path) -> Iterator[Remark]:
    """Yield the state of each server that `ppdm up` starts."""
    for service, name in SERVER_NAMES.items():
        running = read_record(Home(root).up_record(service))
        if running is None:
            yield Remark(name, "not running; `ppdm up` starts it, a release brings its own")
        elif not running.is_alive:
            yield Remark(
                name, f"was started by `ppdm up` and has died (pid {running.pid}).", "ppdm up"
            )
        elif not running.is_healthy(TIMEOUT_SECONDS):
            text = f"runs (pid {running.pid}) and does not respond at {running.address}."
            yield Remark(name, text, "ppdm down --now, then ppdm up")
        else:
            yield Remark(name, f"{running.address} (pid {running.pid})")


def check_cluster(root: Path) -> Iterator[Remark]:
    """Yield the state of the cluster that `ppdm cluster up` starts; nothing if there is none."""
    from ppdm.services.cluster import read_cluster

    record = read_cluster(root)
    if record is None:
        return
    living = {process.pid for process in record.living}
    count, lost = len(record.workers), len(set(record.workers) - living)
    if record.scheduler not in living:
        text = "was started by `ppdm cluster up`, and its scheduler has died."
        yield Remark("cluster", text, "ppdm cluster down, then ppdm cluster up")
    elif lost:
        text = f"{record.address}: {lost} of {count} workers have died."
        yield Remark("cluster", text, "ppdm cluster down, then ppdm cluster up")
    else:
        yield Remark("cluster", f"{record.address}, {count} workers")


def check_folders(home: Home) -> Iterator[Remark]:
    """Yield who can read the private folder, and the reports of defects."""
    mode = home.private.stat().st_mode & 0o777
    if is_shared(home.private):
        yield Remark("folders", f"{home.private} is shared with the group {home.private.group()}")
    elif mode & 0o077:
        text = f"{home.private} can be read by others (mode {mode:o})."
        yield Remark("folders", text, f"chmod 700 {shlex.quote(str(home.private))}")
    for report in sorted((home.private / "defects").glob("*.txt")):
        text = f"a defect of ppdm was recorded: {report.name}."
        yield Remark("defects", text, f"Report it, then delete {report}")


def check_home_hooks(home: Home) -> Iterator[Remark]:
    """Yield the programs that run when a release ends, or what is wrong with their file."""
    from tasks.notify.hooks import OtherOwner, read_hooks

    try:
        programs = [hook.command[0] for hook in read_hooks(home)]
    except OtherOwner as problem:
        yield Remark("hooks", problem.message, problem.remedy, is_urgent=False)
        return
    except BadInput as problem:
        yield Remark("hooks", problem.message, problem.remedy)
        return
    yield Remark("hooks", f"{len(programs)}: {', '.join(programs)}" if programs else "none")
    for program in programs:
        if not os.access(program, os.X_OK):
            text = f"the program {program} cannot be started."
            yield Remark("hooks", text, f"Install it, or correct {home.hooks}")


def check_locks(home: Home) -> Iterator[Remark]:
    """Yield who holds each lock."""
    held = [(lock, read_holder(lock)) for lock in sorted(home.locks.glob("*.lock"))]
    busy = [(lock.stem, holder) for lock, holder in held if holder]
    for name, holder in busy:
        yield Remark("lock", f"{name}: {holder}")
    if not busy:
        yield Remark("locks", "none is held")


def check_warehouse(home: Home) -> Iterator[Remark]:
    """Yield what the warehouse records of keys, history and runs."""
    from warehouse.database import Store
    from warehouse.publishing.withdraw import complete_withdrawals

    if not home.database.exists():
        yield Remark("warehouse", "none yet; the first release creates it")
        return
    store = Store(home, limit=TIMEOUT_SECONDS)
    try:
        complete_withdrawals(store)
        found = [
            *check_keys(store),
            check_history_chain(store),
            *check_runs(store),
            *check_deliveries(store),
        ]
    except MachineTrouble as trouble:
        found = [Remark("warehouse", trouble.message, trouble.remedy or "Try again.")]
    yield from found


def check_keys(store: Store) -> Iterator[Remark]:
    """Yield for each key whether it is present and backed up."""
    from warehouse.integrity.dataset_key import (
        check_key,
        find_dataset_key,
        find_home_key,
        is_backed_up,
    )
    from warehouse.runs import list_datasets

    with store.transaction("doctor") as db:
        datasets = list_datasets(db)
    files = [find_home_key(store), *(find_dataset_key(store, dataset) for dataset in datasets)]
    for file in files:
        name = file.dataset or "of the home"
        if file.known is None:
            yield Remark("key", f"{name}: none yet; the first release creates it")
            continue
        try:
            check_key(file)
        except BadInput as problem:
            yield Remark("key", problem.message, problem.remedy)
            continue
        if is_backed_up(store, file):
            yield Remark("key", f"{name}: present, and backed up once")
        else:
            text = f"{name}: present, never backed up; without it no release can follow."
            command = " ".join(filter(None, ("ppdm key backup", file.dataset, "--out FILE")))
            remedy = f"{command}{format_home_option(store.home.root)}"
            yield Remark("key", text, remedy, is_urgent=False)


def check_history_chain(store: Store) -> Remark:
    """Return whether the history is complete and unchanged, and the published folders with it."""
    from warehouse.integrity.history import check_history
    from warehouse.integrity.published_folders import check_published

    try:
        with store.transaction("doctor") as db:
            found = check_history(db)
            check_published(db)
    except (BadInput, Refused) as problem:
        return Remark("history", problem.message, problem.remedy)
    last = found.events[-1]["number"] if found.events else 0
    return Remark("history", f"complete, up to event {last}")


def check_runs(store: Store) -> Iterator[Remark]:
    """Yield the runs that await a decision, and those whose process died."""
    from warehouse.database import list_runs

    with store.transaction("doctor") as db:
        every = list_runs(db)
    orphans = 0
    for run in every:
        if run.stage in FINISHED or read_holder(store.home.dataset_lock(run.dataset)):
            continue
        if run.stage == Stage.AWAITING_REVIEW:
            text = f"{run.release_id} awaits a decision."
            how = run.stage.next_step.format(release_id=run.release_id)
            remedy = f"{how}{format_home_option(store.home.root)}"
            yield Remark("run", text, remedy, is_urgent=False)
            continue
        orphans += 1
        text = f"{run.release_id} stopped after '{run.stage}' and its process is gone."
        yield Remark("run", text, run.stage.next_step)
    if not orphans:
        yield Remark("runs", f"{len(every)}, none left behind by a dead process")


def check_deliveries(store: Store) -> Iterator[Remark]:
    """Yield the releases that a server does not have yet, or still has after a withdrawal."""
    from warehouse.publishing.deliveries import REMOVED, list_pending_deliveries
    from warehouse.runs import list_datasets

    with store.transaction("doctor") as db:
        pending = [each for name in list_datasets(db) for each in list_pending_deliveries(db, name)]
    for delivery, step in pending:
        name, kind = delivery.release_id, delivery.kind
        if step == REMOVED:
            text = f"{name} was withdrawn, and is still in its {kind} sink."
            yield Remark("sink", text, "Repeat the withdrawal with the same reason.")
        else:
            text = f"{name} is published, and not yet in its {kind} sink."
            yield Remark("sink", text, "Release the dataset again; that completes it.")
