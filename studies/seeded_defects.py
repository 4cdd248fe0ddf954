"""Seed one defect at a time into a copy of the project, and see whether the tests notice it.

    python -m studies.seeded_defects                      # all defects of seeded_defects.toml
    python -m studies.seeded_defects gate_ wilson         # those whose name contains one of these
    python -m studies.seeded_defects --jobs 2 --json out.json
    python -m studies.seeded_defects --first              # quick: the likeliest test file alone

Each defect replaces a text that occurs once in a file, then runs the tests of that package and
stops at the first failure: "caught". If all of them pass, it "survived" and a test is missing. The
exit code is 0 if every defect was caught. A text that does not occur once "does not apply": the
code has changed, and the defect must be written again.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

ROOT = Path(__file__).resolve().parents[1]
TABLE = Path(__file__).with_suffix(".toml")
MAX_SECONDS = 1800  # a defect may make a test wait forever
PYTEST = ("-m", "pytest", "-x", "-q", "-n0", "-p", "no:cacheprovider", "--tb=no")
FAILED, PASSED = 1, 0  # exit codes of pytest
NOT_COPIED = (".git", ".venv", "__pycache__", ".*_cache", ".hypothesis", ".ppdm", "build", "dist")

Outcome = Literal["caught", "survived", "does not apply", "tests do not run"]


@dataclass(frozen=True)
class Defect:
    """A small mistake in one file, and the tests of its package."""

    name: str
    file: str
    old: str
    new: str
    first: str  # the test file that probably notices it
    tests: tuple[str, ...]

    def apply(self, root: Path) -> bool:
        """Replace the text below ``root``; return False if it does not occur exactly once."""
        path = root / self.file
        text = path.read_text() if path.is_file() else ""
        if text.count(self.old) != 1:
            return False
        path.write_text(text.replace(self.old, self.new))
        return True


@dataclass(frozen=True)
class Result:
    """What the tests made of one defect."""

    name: str
    file: str
    outcome: Outcome
    seconds: float
    test: str = ""  # the first that failed


def read_defects(table: Path, names: Sequence[str] = ()) -> list[Defect]:
    """Return the defects of a table whose names contain one of ``names``; all if there is none."""
    content = tomllib.loads(table.read_text())
    tests = {name: tuple(paths) for name, paths in content["tests"].items()}
    defects = [Defect(**{**entry, "tests": tests[entry["tests"]]}) for entry in content["defects"]]
    repeated = [name for name, count in Counter(each.name for each in defects).items() if count > 1]
    if repeated:
        raise ValueError(f"Two defects have the name {repeated[0]}.")
    return [each for each in defects if not names or any(part in each.name for part in names)]


def copy_project(source: Path, target: Path) -> None:
    """Copy the project as it is now, without what is made inside it."""
    shutil.copytree(source, target, ignore=shutil.ignore_patterns(*NOT_COPIED))


def try_defect(defect: Defect, source: Path) -> Result:
    """Run the tests of a package on a copy of the project with the defect."""
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="seeded-defect-") as folder:
        copy = Path(folder, "project")
        copy_project(source, copy)
        if not defect.apply(copy):
            return Result(defect.name, defect.file, "does not apply", 0.0)
        data = source.parent / "shared" / "data"  # see tests/conftest.py
        code, output = run_tests(copy, (defect.first, *defect.tests), data)
    seconds = round(time.monotonic() - begin, 1)
    if code == PASSED:
        return Result(defect.name, defect.file, "survived", seconds)
    found = re.search(r"^(?:FAILED|ERROR) (\S+)", output, re.MULTILINE)
    if code == FAILED and found:
        return Result(defect.name, defect.file, "caught", seconds, found[1])
    return Result(defect.name, defect.file, "tests do not run", seconds)


def run_tests(root: Path, paths: Sequence[str], data: Path) -> tuple[int, str]:
    """Run the tests path by path; return exit code and output of the first run that fails.

    The code is -1 if they take too long.
    """
    environment = {"PPDM_DATA": str(data), **os.environ}
    environment["PYTHONPATH"] = str(root)  # comes before an installed project
    deadline = time.monotonic() + MAX_SECONDS
    for path in filter(lambda path: (root / path).exists(), paths):
        try:
            done = subprocess.run(
                [sys.executable, *PYTEST, path],
                cwd=root,
                env=environment,
                capture_output=True,
                text=True,
                timeout=max(1.0, deadline - time.monotonic()),
            )
        except subprocess.TimeoutExpired:
            return -1, ""
        if done.returncode != PASSED:
            return done.returncode, done.stdout
    return PASSED, ""


def try_all(defects: Sequence[Defect], source: Path, jobs: int) -> Iterator[Result]:
    """Yield the result of each defect as soon as it is known, ``jobs`` at a time."""
    with ThreadPoolExecutor(jobs) as pool:
        started = [pool.submit(try_defect, defect, source) for defect in defects]
        yield from (each.result() for each in as_completed(started))


def format_result(result: Result) -> str:
    """Return a line of the table."""
    return f"{result.outcome:<16} {result.seconds:7.1f} s  {result.name:<44} {result.test}".rstrip()


def main(arguments: Sequence[str] | None = None) -> int:
    """Try the defects, print a line for each, and return 0 if all were caught."""
    parser = argparse.ArgumentParser(description="See whether the tests notice seeded defects.")
    parser.add_argument("names", nargs="*", help="parts of names; without any, all defects")
    parser.add_argument("--jobs", type=int, default=1, help="defects at a time")
    parser.add_argument("--json", type=Path, help="write the results to this file")
    parser.add_argument("--root", type=Path, default=ROOT, help="the project to copy")
    parser.add_argument("--check", action="store_true", help="only check that the texts occur once")
    parser.add_argument("--first", action="store_true", help="run only the likeliest test file")
    options = parser.parse_args(arguments)
    defects = read_defects(TABLE, options.names)
    if options.first:
        defects = [replace(each, tests=()) for each in defects]
    if options.check:
        missing = [each.name for each in defects if not occurs_once(each, options.root)]
        print("\n".join(missing) or f"All {len(defects)} defects apply.")
        return int(bool(missing))
    results: list[Result] = []
    for result in try_all(defects, options.root.resolve(), options.jobs):
        results.append(result)
        print(format_result(result), flush=True)
        if options.json:
            options.json.write_text(json.dumps([asdict(each) for each in results], indent=1) + "\n")
    counts = Counter(result.outcome for result in results)
    print(", ".join(f"{count} {outcome}" for outcome, count in counts.items()))
    return int(not results or set(counts) != {"caught"})


def occurs_once(defect: Defect, root: Path) -> bool:
    """Return whether a defect applies to the project."""
    path = root / defect.file
    return path.is_file() and path.read_text().count(defect.old) == 1


if __name__ == "__main__":
    sys.exit(main())
