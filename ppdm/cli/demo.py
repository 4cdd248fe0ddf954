"""`ppdm demo`: release one table by two methods, with the same attacker and limits."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Group, RenderableType

from ppdm.cli.console import make_grid, make_text, shorten_path
from ppdm.cli.examples import find_examples
from ppdm.cli.release import release_files
from ppdm.cli.result import CommandResult
from ppdm.example_tables import TABLES
from ppdm_core.model.errors import Defect
from tasks.progress import Step, log_progress, start_step

# In this order: after a refusal, other settings on the same data need a decision.
EXAMPLES = ("wdbc_pca_laplace.toml", "wdbc_rotation.toml")
TABLE = "wdbc.csv"
TITLE = "Two releases of one table (569 patients, 30 measurements), same attacker and limits."


def run_demo(folder: Path) -> CommandResult:
    """Run both example releases; raise Defect unless the first passes and the second fails."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in EXAMPLES:
        (folder / name).write_bytes((find_examples() / name).read_bytes())
    start_step(Step.START)
    log_progress("write the table")
    (folder / TABLE).write_bytes(TABLES[TABLE]())
    with use_demo_home(folder):
        noisy, rotation = release_files([folder / name for name in EXAMPLES], dry_run=False)
    home = folder.absolute() / ".ppdm"
    view = Group(make_text(TITLE, "bold"), noisy.view, rotation.view, render_next_steps(home))
    payload = {"releases": [each.payload["release"] for each in (noisy, rotation)]}
    if (noisy.exit_code, rotation.exit_code) != (0, 3):
        raise Defect(
            f"The demo ended with the exit codes {noisy.exit_code} and {rotation.exit_code}, not "
            "with 0 and 3.",
            remedy=f"See: ppdm status --home {shorten_path(home)}",
        )
    return CommandResult(view, payload)


@contextmanager
def use_demo_home(folder: Path) -> Iterator[None]:
    """Set PPDM_HOME to a home inside the folder, so that the steward's home is not used."""
    given = os.environ.get("PPDM_HOME")
    os.environ["PPDM_HOME"] = str(folder.absolute() / ".ppdm")
    try:
        yield
    finally:
        if given is None:
            del os.environ["PPDM_HOME"]
        else:
            os.environ["PPDM_HOME"] = given


def render_next_steps(home: Path) -> RenderableType:
    """Return where the published files are and which commands show more."""
    latest = shorten_path(home / "published" / "wdbc" / "latest")
    ppdm = shorten_path(Path(sys.executable).with_name("ppdm"))
    return make_grid(
        [
            ("dataset", f"{latest}/data.parquet"),
            ("manifest", f"{latest}/manifest.json"),
            ("card", f"{latest}/card.md"),
            ("check it", f"{ppdm} verify {latest}"),
            ("pages", f"{ppdm} up --home {shorten_path(home)}  (Prefect and MLflow; then: down)"),
        ]
    )
