"""`ppdm demo`: release one table by two methods, with the same attacker and limits."""

from __future__ import annotations

import csv
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ppdm.cli.console import shorten_path
from ppdm.cli.release import release_files
from ppdm.cli.result import CommandResult
from ppdm_core.model.errors import Defect
from tasks.progress import log_progress

# In this order: after a refusal, other settings on the same data need a decision.
EXAMPLES = ("wdbc_pca_laplace.toml", "wdbc_rotation.toml")


def run_demo(folder: Path) -> CommandResult:
    """Run both example releases; raise Defect unless the first passes and the second fails."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in EXAMPLES:
        shutil.copyfile(find_examples() / name, folder / name)
    write_table(folder / "wdbc.csv")
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


def find_examples() -> Path:
    """Return the folder of the examples: next to the packages in a checkout, else inside ppdm."""
    package = Path(__file__).resolve().parents[1]
    in_checkout = package.parent / "examples"
    return in_checkout if (in_checkout / EXAMPLES[0]).exists() else package / "examples"


def write_table(path: Path) -> None:
    """Write scikit-learn's copy of the Wisconsin diagnostic table, with invented patient ids."""
    log_progress("writing the table")
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer()
    names = [name.replace(" ", "_") for name in data.feature_names]
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["patient_id", "diagnosis", *names])
        for i, (values, target) in enumerate(zip(data.data, data.target, strict=True)):
            label = data.target_names[target]
            writer.writerow([f"P{100_000 + 7 * i}", label, *map(repr, values.tolist())])


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
