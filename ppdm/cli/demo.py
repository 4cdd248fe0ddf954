"""The product's point in one go: the same table, attacker and limits, two methods."""

from __future__ import annotations

import csv
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ppdm.cli.console import near
from ppdm.cli.release import release_files
from ppdm.cli.result import Answer
from ppdm_core.model.errors import Defect
from tasks.progress import log_progress

# In this order: after a refusal, other settings on the same data are left to people.
EXAMPLES = ("wdbc_pca_laplace.toml", "wdbc_rotation.toml")


def run_demo(folder: Path) -> Answer:
    folder.mkdir(parents=True, exist_ok=True)
    for name in EXAMPLES:
        shutil.copyfile(examples_folder() / name, folder / name)
    write_table(folder / "wdbc.csv")
    with own_home(folder):
        noisy, rotation = release_files([folder / name for name in EXAMPLES], dry_run=False)
    home = folder.absolute() / ".ppdm"
    text = "\n\n".join(
        [
            "Two releases of one table (569 patients, 30 measurements), same attacker and limits.",
            noisy.text,
            rotation.text,
            where_to_look(home),
        ]
    )
    # The demo shows what it promises, or it is broken.
    as_promised = rotation.exit_code == 3 and noisy.exit_code == 0
    if not as_promised:
        raise Defect(f"The demo did not end as promised.\n{text}")
    return Answer(text, {"rotation": rotation.payload, "pca_laplace": noisy.payload})


@contextmanager
def own_home(folder: Path) -> Iterator[None]:
    """The demo never touches a steward's real home."""
    given = os.environ.get("PPDM_HOME")
    os.environ["PPDM_HOME"] = str(folder.absolute() / ".ppdm")
    try:
        yield
    finally:
        if given is None:
            del os.environ["PPDM_HOME"]
        else:
            os.environ["PPDM_HOME"] = given


def examples_folder() -> Path:
    """In a checkout beside the packages; in an installed wheel inside this one."""
    package = Path(__file__).resolve().parents[1]
    beside = package.parent / "examples"
    return beside if (beside / EXAMPLES[0]).exists() else package / "examples"


def write_table(path: Path) -> None:
    """scikit-learn's copy of the Wisconsin diagnostic table, with made-up patient ids."""
    log_progress("writing the table")
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer()
    names = [column_name(name) for name in data.feature_names]
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["patient_id", "diagnosis", *names])
        for i, (values, target) in enumerate(zip(data.data, data.target, strict=True)):
            label = data.target_names[target]
            writer.writerow([f"P{100_000 + 7 * i}", label, *map(repr, values.tolist())])


def column_name(name: str) -> str:
    return name.replace(" ", "_")


def where_to_look(home: Path) -> str:
    latest = near(home / "published" / "wdbc" / "latest")
    ppdm = near(Path(sys.executable).with_name("ppdm"))
    return "\n".join(
        [
            "Where to look:",
            f"  dataset    {latest}/data.parquet",
            f"  manifest   {latest}/manifest.json",
            f"  card       {latest}/card.md",
            f"  check it   {ppdm} verify {latest}",
            f"  pages      {ppdm} up --home {near(home)}      (Prefect and MLflow; then: down)",
        ]
    )
