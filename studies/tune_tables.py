"""Tune and release public tables from an unedited draft, for the table in the documentation.

    python -m studies.tune_tables results.jsonl                # all ten, the smallest first
    python -m studies.tune_tables results.jsonl iris wine
    python -m studies.tune_tables results.jsonl --summary      # only print the table

Each table gets a draft by `ppdm init`, with owner, audience and who set the limits filled in, then
`ppdm tune`, and `ppdm release` of the file that the tune proposes, in a home of its own. A run
continues a file of results. PPDM_DATA names the folder of the tables.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from studies.public_tables import get_data_folder

TABLES = {  # name in the documentation -> file, the smallest first
    "iris": "iris.csv",
    "wine": "wine.csv",
    "ionosphere": "ionosphere.csv",
    "wdbc": "wdbc.csv",
    "breast_cancer_wisconsin": "breast_cancer_wisconsin.csv",
    "pima": "pima.csv",
    "segmentation": "segmentation_test.csv",
    "pendigits": "pendigits_train.csv",
    "magic": "magic.csv.gz",
    "adult": "adult.csv.gz",
}
COLUMNS = ("table", "records", "tried", "proposed", "use", "original", "release", "why not")
MAX_SENTENCE = 160


def run(folder: Path, *arguments: str) -> dict[str, Any]:
    """Run a command of ppdm in a folder, and return its reply."""
    command = [sys.executable, "-m", "ppdm.cli.app", *arguments, "--json"]
    env = {**os.environ, "PPDM_HOME": str(folder / "home")}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
    reply: dict[str, Any] = json.loads(done.stdout)
    return reply


def measure(name: str) -> dict[str, Any]:
    """Draft, tune and release one table."""
    source, start = get_data_folder() / TABLES[name], time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix=f"ppdm-tune-{name}-"))
    try:
        content = source.read_bytes()
        plain = gzip.decompress(content) if source.suffix == ".gz" else content
        (folder / f"{name}.csv").write_bytes(plain)
        decided = ("--owner", "registry", "--audience", "partners", "--set-by", "DPO")
        drafted = run(folder, "init", f"{name}.csv", "--out", f"{name}.toml", *decided)
        tuned = run(folder, "tune", f"{name}.toml") if drafted["ok"] else drafted
        released = run(folder, "release", f"{name}_tuned.toml") if tuned.get("file") else {}
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    seconds = round(time.monotonic() - start)
    return {"table": name, "tune": tuned, "release": released, "seconds": seconds}


def summarize(found: Sequence[dict[str, Any]]) -> str:
    """Return the results as a Markdown table."""
    lines = [f"| {' | '.join(COLUMNS)} |", f"|{' --- |' * len(COLUMNS)}"]
    for each in found:
        tuned, released = each["tune"], each["release"].get("release") or {}
        proposed = tuned.get("proposed")
        sentences = [*tuned.get("obstacles", ()), *(x["sentence"] for x in tuned["trade_offs"])]
        use = proposed["utility"] if proposed else {}
        cells = (
            each["table"],
            f"{tuned['records']:,}",
            str(tuned["tried"]),
            format_setting(proposed),
            use.get("words", ""),
            f"{100 * use['share']:.0f} % of the way" if use else "",
            str(released.get("stage", "not made")),
            "" if proposed else (sentences or [""])[0][:MAX_SENTENCE],
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def format_setting(proposed: dict[str, Any] | None) -> str:
    """Return method and parameters in a cell."""
    if proposed is None:
        return "none"
    given = ", ".join(f"{name} {value}" for name, value in proposed["parameters"].items())
    return f"`{proposed['method']}` {given}"


def main(arguments: Sequence[str]) -> int:
    """Measure the tables that a file does not have yet, and print all of it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("results", type=Path)
    parser.add_argument("names", nargs="*", default=list(TABLES))
    parser.add_argument("--summary", action="store_true")
    given = parser.parse_args(arguments)
    lines = given.results.read_text().splitlines() if given.results.exists() else []
    found = [json.loads(line) for line in lines]
    done = {each["table"] for each in found}
    for name in () if given.summary else given.names:
        if name not in done:
            found.append(measure(name))
            with given.results.open("a") as file:
                file.write(json.dumps(found[-1]) + "\n")
    print(summarize(found))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
