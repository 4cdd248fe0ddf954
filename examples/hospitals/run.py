"""Three hospitals release together: `python examples/hospitals/run.py [FOLDER]`.

The Wisconsin breast cancer table (from scikit-learn) is split between three hospitals. Each party
has its own folder, home, keys and processes; they share one folder for messages.
"""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
HOSPITALS = ("east", "north", "south")
CENTRE = "centre"
PPDM = [sys.executable, "-m", "ppdm.cli.app"]


def write_tables(folder: Path) -> None:
    """Give every third patient to each hospital."""
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer()
    names = [name.replace(" ", "_") for name in data.feature_names]
    for place, hospital in enumerate(HOSPITALS):
        with (folder / hospital / "patients.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["patient_id", "diagnosis", *names])
            for i in range(place, len(data.data), len(HOSPITALS)):
                diagnosis = data.target_names[data.target[i]]
                writer.writerow([f"{hospital[0].upper()}{10_000 + i}", diagnosis, *data.data[i]])


def ask(*arguments: str | Path) -> dict[str, Any]:
    """Run a command of ppdm and return its reply; stop if it does not succeed."""
    command = [*PPDM, *map(str, arguments), "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    reply: dict[str, Any] = json.loads(done.stdout)
    if not reply["ok"]:
        sys.exit(reply["error"]["message"])
    return reply


def main(folder: Path) -> int:
    """Prepare all parties, run them at the same time, and return the exit code of the centre."""
    shared = folder / "shared"
    shared.mkdir(parents=True, exist_ok=True)
    files = {}
    for party in (CENTRE, *HOSPITALS):
        (folder / party).mkdir(exist_ok=True)
        files[party] = folder / party / "release.toml"
        shutil.copy(HERE / "release.toml", files[party])
    write_tables(folder)

    # Outside of an example, people compare these fingerprints by telephone.
    prints = {CENTRE: ask("centre", "status", files[CENTRE])["fingerprint"]}
    prints |= {each: ask("site", "status", files[each])["fingerprint"] for each in HOSPITALS}
    pins = [f"--site={each}={prints[each]}" for each in HOSPITALS]
    ask("centre", "init", files[CENTRE], "--folder", shared, *pins)
    for each in HOSPITALS:
        options = ["--name", each, "--folder", shared, "--centre", prints[CENTRE], *pins]
        ask("site", "join", files[each], *options)

    print("All parties run; the log of each is in its folder.", flush=True)
    running = {}
    for party in (*HOSPITALS, CENTRE):
        kind = "centre" if party == CENTRE else "site"
        log = (folder / party / "log.txt").open("w")
        command = [*PPDM, kind, "run", str(files[party])]
        running[party] = subprocess.Popen(command, stdout=log, stderr=log)
    codes = {party: process.wait() for party, process in running.items()}
    for party, code in codes.items():
        last = (folder / party / "log.txt").read_text().strip().splitlines()[-1:]
        print(f"{party}: exit code {code}. {''.join(last)}")
    if codes[CENTRE] == 0:
        print(f"published  {folder / CENTRE / '.ppdm' / 'published' / 'wdbc' / 'latest'}")
        print(
            f"report     {folder / CENTRE / '.ppdm' / 'published' / 'wdbc' / 'latest'}/report.html"
        )
    return codes[CENTRE]


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else "hospitals").absolute()))
