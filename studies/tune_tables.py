"""Tune and release public tables from an unedited draft, for the table in the documentation.

    python -m studies.tune_tables FOLDER                # all ten, the smallest first
    python -m studies.tune_tables FOLDER iris wine
    python -m studies.tune_tables FOLDER --summary      # only print the table

Each table gets a draft by `ppdm init`, with owner, audience and who set the limits filled in, then
`ppdm tune` of 12 settings, and `ppdm release` of the file that the tune proposes, in a home of its
own. All commands use one Prefect server. The folder keeps homes and replies: a stopped run
continues, also within a tune, and a command that failed is run again. PPDM_DATA names the folder of
the tables.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import resource
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ppdm.services.prefect_server import use_prefect_server
from ppdm_core.tuning.setting import Setting
from studies.public_tables import get_data_folder
from warehouse.home import Home

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
SETTINGS = 12
DECIDED = ("--owner", "registry", "--audience", "partners", "--set-by", "DPO", "--label", "label")
DECIDED_CODES = (0, 3, 4)  # published or proposed, refused, in review
USE = "best_accuracy"
WITHIN = 0.10  # of the original, or of the best setting tried
COLUMNS = (
    "table",
    "records",
    "proposed",
    "original",
    "best tried",
    "released",
    "release",
    "within 10 points of",
)


def run(folder: Path, name: str, *arguments: str) -> dict[str, Any]:
    """Return the reply of a command of ppdm, which is run unless its reply is stored already."""
    stored = folder / f"{name}.json"
    if not stored.exists():
        command = [sys.executable, "-m", "ppdm.cli.app", *arguments, "--json"]
        env = {**os.environ, "PPDM_HOME": str(folder / "home")}
        before = count_cpu_seconds()
        with (folder / f"{name}.log").open("w") as log:
            done = subprocess.run(command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=log)
        if done.returncode not in DECIDED_CODES:
            raise SystemExit(f"ppdm {arguments[0]} of {folder.name} failed: {folder / name}.log")
        reply = {**json.loads(done.stdout), "cpu_seconds": count_cpu_seconds() - before}
        stored.write_text(json.dumps(reply))
    found: dict[str, Any] = json.loads(stored.read_text())
    return found


def count_cpu_seconds() -> float:
    """Return the processor time of all commands that ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure(folder: Path, name: str) -> None:
    """Draft, tune and release one table."""
    folder.mkdir(parents=True, exist_ok=True)
    source = get_data_folder() / TABLES[name]
    content = source.read_bytes()
    plain = gzip.decompress(content) if source.suffix == ".gz" else content
    (folder / f"{name}.csv").write_bytes(plain)
    draft = f"{name}.toml"
    run(folder, "init", "init", f"{name}.csv", "--out", draft, *DECIDED)
    tuned = run(folder, "tune", "tune", draft, "--settings", str(SETTINGS))
    if tuned.get("file"):
        run(folder, "release", "release", f"{name}_tuned.toml")


def summarize(folder: Path, names: Sequence[str]) -> str:
    """Return the results as a Markdown table, and the sentences about refusals."""
    lines = [f"| {' | '.join(COLUMNS)} |", f"|{' --- |' * len(COLUMNS)}"]
    sentences, seconds = [], 0.0
    for name in names:
        if not (folder / name / "tune.json").exists():
            continue
        found = {
            each: json.loads((folder / name / f"{each}.json").read_text())
            for each in ("tune", "release")
            if (folder / name / f"{each}.json").exists()
        }
        seconds += sum(each["cpu_seconds"] for each in found.values())
        lines.append(f"| {' | '.join(describe(name, **found))} |")
        sentences += [f"* {name}: {each}" for each in list_reasons(**found)]
    return "\n".join([*lines, "", *sentences, "", f"{seconds / 60:.0f} minutes of processor time"])


def describe(name: str, tune: dict[str, Any], release: dict[str, Any] | None = None) -> list[str]:
    """Return the cells of a row."""
    settings = tune.get("settings", ())
    tried = [find_accuracy(each["scores"]) for each in settings]
    best = max((value for value in tried if value is not None), default=None)
    body = (release or {}).get("release") or {}
    mine = [each for each in body.get("scores", ()) if name_score(each) == USE]
    released = mine[0]["value"] if mine else None
    original = mine[0]["original"] if mine else None
    goals = {"the original": original, "the best tried": best}
    reached = [
        goal
        for goal, value in goals.items()
        if None not in (released, value) and released >= value - WITHIN
    ]
    return [
        name,
        f"{tune.get('records', 0):,}",
        format_setting(tune.get("proposed")),
        format_share(original),
        format_share(best),
        format_share(released),
        str(body.get("stage", "none")),
        ", ".join(reached),
    ]


def name_score(score: dict[str, Any]) -> str:
    """Return the name of a score of a release."""
    return ".".join(filter(None, (score["attack"], score["scenario"], score["metric"])))


def find_accuracy(scores: Sequence[dict[str, Any]]) -> float | None:
    """Return the accuracy among the scores of a setting."""
    return next((each["value"] for each in scores if each["name"] == USE), None)


def format_share(value: float | None) -> str:
    """Return a share in percent."""
    return "" if value is None else f"{100 * value:.1f} %"


def format_setting(proposed: dict[str, Any] | None) -> str:
    """Return method and parameters in a cell."""
    if proposed is None:
        return "none"
    return Setting(proposed["method"], proposed["parameters"]).title


def list_reasons(tune: dict[str, Any], release: dict[str, Any] | None = None) -> list[str]:
    """Return why a table was not tuned or not published, in the words of the commands."""
    body = (release or {}).get("release")
    if body:
        return [
            f"{each['check']}: {each['why']}"
            for each in body["findings"]
            if each["outcome"] != "PASS"
        ]
    if "trade_offs" not in tune:
        return [str(tune.get("error", ""))]
    return [*tune["obstacles"], *(each["sentence"] for each in tune["trade_offs"])]


def main(arguments: Sequence[str]) -> int:
    """Measure the tables that the folder does not have yet, and print all of it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", default=list(TABLES))
    parser.add_argument("--summary", action="store_true")
    given = parser.parse_args(arguments)
    if not given.summary:
        server = Home(given.folder.absolute() / "server")
        server.create()
        with use_prefect_server(server.root, print):
            for name in given.names:
                measure(given.folder / name, name)
    print(summarize(given.folder, list(TABLES)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
