"""The parties of a common release on one machine: each with a folder, a home and processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

CENTRE = "centre"
FILE = "release.toml"
IN_REVIEW = 4  # exit code
PPDM = (sys.executable, "-m", "ppdm.cli.app")


def ppdm(folder: Path, *args: str) -> dict[str, Any]:
    """Run a command in the folder of a party, and return its reply."""
    run = subprocess.run([*PPDM, *args, "--json"], cwd=folder, env=make_env(), capture_output=True)
    found: dict[str, Any] = json.loads(run.stdout)
    if run.returncode:
        sys.exit(f"{folder.name}: {found['error']['message']} {found['error']['remedy'] or ''}")
    return found


def make_env() -> dict[str, str]:
    """Return the environment of a party: its home is in its folder."""
    return {name: value for name, value in os.environ.items() if name != "PPDM_HOME"}


def write_parties(folder: Path, files: Mapping[str, Mapping[str, bytes]]) -> None:
    """Write the files of each party into a folder of its own, and make the shared folder."""
    if folder.exists() and any(folder.iterdir()):
        sys.exit(f"{folder} is not empty. Name another folder.")
    (folder / "shared").mkdir(parents=True)
    for name, contents in files.items():
        (folder / name).mkdir()
        for path, content in contents.items():
            (folder / name / path).write_bytes(content)


def join_parties(folder: Path, sites: Sequence[str], options: Sequence[str] = ()) -> None:
    """Let every party pin the fingerprints of all others.

    Here one program reads all fingerprints; real parties compare them by telephone.
    """
    prints = {
        name: ppdm(folder / name, "centre" if name == CENTRE else "site", "status", FILE)[
            "fingerprint"
        ]
        for name in (CENTRE, *sites)
    }
    shared = ("--folder", str(folder / "shared"))
    pins = [part for site in sites for part in ("--site", f"{site}={prints[site]}")]
    ppdm(folder / CENTRE, "centre", "init", FILE, *shared, *pins)
    for site in sites:
        centre = ("--centre", prints[CENTRE])
        ppdm(folder / site, "site", "join", FILE, "--name", site, *shared, *centre, *pins, *options)


def run_parties(folder: Path, sites: Sequence[str]) -> dict[str, int]:
    """Run all parties at the same time, each in processes of its own; return their exit codes.

    What a party prints stands in the file `run.log` of its folder. The centre is stopped if a site
    waits for its reviewers: it continues with the next run.
    """
    started = {}
    for name in (CENTRE, *sites):
        role = "centre" if name == CENTRE else "site"
        with (folder / name / "run.log").open("ab") as log:
            started[name] = subprocess.Popen(
                [*PPDM, role, "run", FILE],
                cwd=folder / name,
                env=make_env(),
                stdout=log,
                stderr=log,
            )
    codes = {name: started[name].wait() for name in sites}
    if IN_REVIEW in codes.values():
        started[CENTRE].terminate()
    code = started[CENTRE].wait()
    return {CENTRE: IN_REVIEW if code < 0 else code, **codes}


def show_end(folder: Path, codes: Mapping[str, int]) -> int:
    """Print how the release ended for each party; return the exit code of the centre."""
    for name, code in codes.items():
        lines = (folder / name / "run.log").read_text().splitlines()
        print(f"{name}: exit code {code}. {lines[-1] if lines else ''}")
    published = sorted(folder.glob("centre/.ppdm/published/*/latest"))
    for path in published:
        print(f"Publication of the centre: {path}")
        print(f"Report for recipients: {path / 'report.html'}")
        print(f"To check it: ppdm verify {path}")
    return codes[CENTRE]
