"""`ppdm doctor`: what is running, what is stuck, what is missing, and what to do about it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ppdm.cli.result import Answer
from ppdm.services.prefect_server import reap_orphans
from ppdm.services.processes import read_record
from ppdm.services.services import NAMES, check_home, option
from ppdm_core.model.errors import BadInput, MachineTrouble, Refused
from tasks.environment import chosen_home
from warehouse.home import Home, is_shared
from warehouse.locks import holder_of
from warehouse.stages import FINISHED, WAITING

if TYPE_CHECKING:
    from warehouse.database import Store

PATIENCE = 10.0  # seconds for the warehouse; a release may be writing to it


@dataclass(frozen=True)
class Remark:
    about: str
    text: str
    remedy: str | None = None  # None: nothing is wrong

    @property
    def line(self) -> str:
        mark = "ok  " if self.remedy is None else "LOOK"
        return f"{mark}  {self.about:<10} {self.text}" + (
            f"\n{'':17}{self.remedy}" if self.remedy else ""
        )


def examine(home: Path | None) -> Answer:
    root = chosen_home(home)
    check_home(root)
    reap_orphans(root)
    remarks = [*services(root), *folders(Home(root)), *locks(Home(root)), *records(Home(root))]
    wrong = [remark for remark in remarks if remark.remedy]
    lines = [f"Home {root}", *(remark.line for remark in remarks)]
    trouble = None
    if wrong:
        count = "One thing needs" if len(wrong) == 1 else f"{len(wrong)} things need"
        lines.append(f"{count} a look.")
        trouble = MachineTrouble(wrong[0].text, remedy=wrong[0].remedy)
    payload = {"home": str(root), "remarks": [asdict(remark) for remark in remarks]}
    return Answer("\n".join(lines), payload, exit_code=5 if wrong else 0, error=trouble)


def services(root: Path) -> Iterator[Remark]:
    for service, name in NAMES.items():
        running = read_record(Home(root).up_record(service))
        if running is None:
            yield Remark(name, "not running; `ppdm up` starts it, a release brings its own")
        elif not running.is_alive:
            yield Remark(
                name, f"was started by `ppdm up` and has died (pid {running.pid}).", "ppdm up"
            )
        elif not running.answers(PATIENCE):
            text = f"runs (pid {running.pid}) and does not answer at {running.address}."
            yield Remark(name, text, "ppdm down --now, then ppdm up")
        else:
            yield Remark(name, f"{running.address} (pid {running.pid})")


def folders(home: Home) -> Iterator[Remark]:
    mode = home.private.stat().st_mode & 0o777
    if is_shared(home.private):
        yield Remark("folders", f"{home.private} is shared with the group {home.private.group()}")
    elif mode & 0o077:
        text = f"{home.private} can be read by others (mode {mode:o})."
        yield Remark("folders", text, f"chmod 700 {shlex.quote(str(home.private))}")
    for report in sorted((home.private / "defects").glob("*.txt")):
        text = f"a defect of ppdm was recorded: {report.name}."
        yield Remark("defects", text, f"Report it, then delete {report}")


def locks(home: Home) -> Iterator[Remark]:
    held = [(lock, holder_of(lock)) for lock in sorted(home.locks.glob("*.lock"))]
    busy = [(lock.stem, holder) for lock, holder in held if holder]
    for name, holder in busy:
        yield Remark("lock", f"{name}: {holder}")
    if not busy:
        yield Remark("locks", "nobody holds one")


def records(home: Home) -> Iterator[Remark]:
    """What the warehouse knows of keys and runs."""
    from warehouse.database import Store

    if not home.database.exists():
        yield Remark("warehouse", "none yet; the first release makes it")
        return
    store = Store(home, limit=PATIENCE)
    try:
        found = [*keys(store), history(store), *runs(store)]
    except MachineTrouble as trouble:
        found = [Remark("warehouse", trouble.message, trouble.remedy or "Try again.")]
    yield from found


def keys(store: Store) -> Iterator[Remark]:
    from tasks.keys import HOME, check_key, is_backed_up, key_file

    with store.transaction("doctor") as db:
        names = db.execute("select name from meta.dataset order by name").fetchall()
    for dataset in (HOME, *(name for (name,) in names)):
        name = dataset or "of the home"
        if key_file(store, dataset).known is None:
            yield Remark("key", f"{name}: none yet; the first release makes it")
            continue
        try:
            check_key(store, dataset)
        except BadInput as problem:
            yield Remark("key", problem.message, problem.remedy)
            continue
        if is_backed_up(store, dataset):
            yield Remark("key", f"{name}: present, and backed up once")
        else:
            text = f"{name}: present, never backed up; without it no release can follow."
            command = " ".join(filter(None, ("ppdm key backup", dataset, "--out FILE")))
            yield Remark("key", text, f"{command}{option(store.home.root)}")


def history(store: Store) -> Remark:
    from warehouse.integrity.history import check_history

    try:
        with store.transaction("doctor") as db:
            found = check_history(db)
    except (BadInput, Refused) as problem:
        return Remark("history", problem.message, problem.remedy)
    last = found.events[-1]["number"] if found.events else 0
    return Remark("history", f"whole, up to event {last}")


def runs(store: Store) -> Iterator[Remark]:
    from warehouse.database import list_runs

    with store.transaction("doctor") as db:
        every = list_runs(db)
    orphans = 0
    for run in every:
        if run.stage in FINISHED or holder_of(store.home.dataset_lock(run.dataset)):
            continue
        if run.stage == WAITING:
            text = f"{run.release_id} waits for a decision by people."
            how = f"ppdm decide {run.release_id} --approve --note WHY (or --reject)"
            yield Remark("run", text, f"{how}{option(store.home.root)}")
            continue
        orphans += 1
        text = f"{run.release_id} stopped after '{run.stage}' and its process is gone."
        yield Remark("run", text, "Release the same file again: it goes on, to the same bytes.")
    if not orphans:
        yield Remark("runs", f"{len(every)}, none left behind by a dead process")
