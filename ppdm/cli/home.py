"""The home that a command works on."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ppdm.services.prefect_server import stop_orphaned_server
from ppdm_core.model.errors import BadInput, MachineTrouble
from tasks.environment import choose_home
from tasks.progress import log_progress
from warehouse.home import Home

if TYPE_CHECKING:
    from warehouse.database import Store


def open_home(home: Path | None) -> Store:
    """Return the warehouse of a home; raise BadInput if there is none.

    A withdrawal that a killed process began is completed first.
    """
    from warehouse.database import Store
    from warehouse.publishing.withdraw import complete_withdrawals

    root = choose_home(home)
    if not Home(root).database.exists():
        raise BadInput(
            f"There is no warehouse in {root}.",
            file=str(root),
            remedy="Name it with --home or PPDM_HOME; a release creates one.",
        )
    stop_orphaned_server(root)
    store = Store(Home(root), say=log_progress)
    with suppress(MachineTrouble):  # it concerns files that this command may not need
        complete_withdrawals(store)
    return store


def check_home(root: Path) -> None:
    """Raise BadInput if the folder is not a home."""
    if not Home(root).private.is_dir():
        raise BadInput(
            f"There is no home in {root}.",
            file=str(root),
            remedy="Name it with --home or PPDM_HOME; `ppdm up` or a release creates one.",
        )


def check_new_file(out: Path) -> None:
    """Raise BadInput if the file that a command would write exists, or its folder does not."""
    if out.exists() or out.is_symlink():
        raise BadInput(
            f"{out.name} exists already.", file=str(out), remedy="Name a file that does not exist."
        )
    if not out.parent.is_dir():
        raise BadInput(
            f"The folder of {out.name} does not exist.", file=str(out), remedy="Create it first."
        )
