"""`ppdm demo`: release one table by two methods, with the same attacker and limits."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ppdm.cli.console import shorten_path
from ppdm.cli.examples import find_examples
from ppdm.cli.release import release_files
from ppdm.cli.result import CommandResult
from ppdm.example_tables import TABLES
from ppdm_core.model.errors import Defect
from tasks.progress import log_progress

# In this order: after a refusal, other settings on the same data need a decision.
EXAMPLES = ("wdbc_pca_laplace.toml", "wdbc_rotation.toml")
TABLE = "wdbc.csv"


def run_demo(folder: Path) -> CommandResult:
    """Run both example releases; raise Defect unless the first passes and the second fails."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in EXAMPLES:
        (folder / name).write_bytes((find_examples() / name).read_bytes())
    log_progress("writing the table")
    (folder / TABLE).write_bytes(TABLES[TABLE]())
    with use_demo_home(folder):
        noisy, rotation = release_files([folder / name for name in EXAMPLES], dry_run=False)
    home = folder.absolute() / ".ppdm"
    text = "\n\n".join(
        [
            "Two releases of one table (569 patients, 30 measurements), same attacker and limits.",
            noisy.text,
            rotation.text,
            format_next_steps(home),
        ]
    )
    is_as_expected = rotation.exit_code == 3 and noisy.exit_code == 0
    if not is_as_expected:
        raise Defect(f"The demo did not end as expected.\n{text}")
    # Keyed by the second part of the file's name.
    names = [Path(name).stem.partition("_")[2] for name in EXAMPLES]
    payloads = dict(zip(names, (noisy.payload, rotation.payload), strict=True))
    return CommandResult(text, {name: payloads[name] for name in reversed(names)})


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


def format_next_steps(home: Path) -> str:
    """Return where the published files are and which commands show more."""
    latest = shorten_path(home / "published" / "wdbc" / "latest")
    ppdm = shorten_path(Path(sys.executable).with_name("ppdm"))
    return "\n".join(
        [
            "Where to look:",
            f"  dataset    {latest}/data.parquet",
            f"  manifest   {latest}/manifest.json",
            f"  card       {latest}/card.md",
            f"  check it   {ppdm} verify {latest}",
            f"  pages      {ppdm} up --home {shorten_path(home)}      "
            "(Prefect and MLflow; then: down)",
        ]
    )
