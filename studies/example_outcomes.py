"""Judge every example under many keys: an example must have one outcome, whatever the key.

    python -m studies.example_outcomes                  # all examples, 30 keys each
    python -m studies.example_outcomes --keys 5 kde     # those whose name contains a word
    python -m studies.example_outcomes --json out.json

Each release is made from the example's own table by the steps of the pipeline, without Prefect, in
a new home with a key of its own. The exit code is 0 if every example has one outcome.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = sorted(path.stem for path in (ROOT / "examples").glob("*.toml"))


@dataclass(frozen=True)
class Judgement:
    """The verdict on one release of an example."""

    example: str
    key: int
    outcome: str
    checks: tuple[str, ...]  # that did not pass
    seconds: float


def judge_example(work: tuple[str, int]) -> Judgement:
    """Release an example under a key up to its verdict; all calls of a process use one folder."""
    (example, key), start = work, time.monotonic()
    folder = Path(tempfile.gettempdir()) / f"ppdm-examples-{os.getpid()}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700)
    os.environ["PPDM_HOME"] = str(folder / "home")
    try:
        outcome, checks = release(folder, example, key)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return Judgement(example, key, outcome, checks, round(time.monotonic() - start, 1))


def release(folder: Path, example: str, key: int) -> tuple[str, tuple[str, ...]]:
    """Return the outcome of a release, and the checks that did not pass."""
    from ppdm.cli.release_files import read_release_file
    from ppdm.example_tables import TABLES
    from tasks.audit.task import attack_shadows
    from tasks.ingest.task import begin_release, load_raw, validate
    from tasks.judge.task import judge
    from tasks.notify import prefect_artifacts
    from tasks.release_summary import read_summary
    from tasks.sanitize.task import draw_candidate
    from warehouse.integrity.dataset_key import dataset_key_path
    from warehouse.integrity.key_files import write_key

    prefect_artifacts.MIN_PROGRESS_INTERVAL = math.inf  # there is no server to show it
    for name, make_table in TABLES.items():
        (folder / name).write_bytes(make_table())
    shutil.copy(ROOT / "examples" / f"{example}.toml", folder)
    context = read_release_file(folder / f"{example}.toml")[1]
    store = context.open_store()
    store.home.create()
    secret = hashlib.sha256(f"example {key}".encode()).digest()
    write_key(dataset_key_path(store.home, context.dataset), secret)
    release_id = begin_release.fn(context)
    for step in (load_raw, validate, draw_candidate, attack_shadows, judge):
        step.fn(context, release_id)
    verdict = read_summary(store, release_id).judged.verdict
    return verdict.outcome, tuple(
        finding.check for finding in verdict.findings if finding.outcome != "PASS"
    )


def format_outcomes(found: Sequence[Judgement]) -> str:
    """Return the outcomes of each example as a Markdown table."""
    lines = ["| example | outcomes | checks that did not pass |", "| --- | --- | --- |"]
    for example in sorted({each.example for each in found}):
        own = [each for each in found if each.example == example]
        outcomes = Counter(each.outcome for each in own)
        checks = Counter(check for each in own for check in each.checks)
        lines.append(f"| {example} | {format_counts(outcomes)} | {format_counts(checks)} |")
    return "\n".join(lines)


def format_counts(counts: Counter[str]) -> str:
    """Return names with their counts, the most frequent first."""
    return ", ".join(f"{name} {count}" for name, count in counts.most_common())


def main(arguments: Sequence[str]) -> int:
    """Judge the chosen examples; return 0 if each has one outcome."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", help="parts of names of examples")
    parser.add_argument("--keys", type=int, default=30)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args(arguments)
    chosen = [name for name in EXAMPLES if not given.names or any(w in name for w in given.names)]
    work = [(name, key) for name in chosen for key in range(given.keys)]
    found = []
    with multiprocessing.get_context("spawn").Pool(given.jobs) as pool:
        for each in pool.imap_unordered(judge_example, work):
            found.append(each)
            print(*asdict(each).values(), file=sys.stderr)
    print(format_outcomes(found))
    if given.json:
        given.json.write_text(json.dumps([asdict(each) for each in found], indent=1))
    outcomes = {name: {each.outcome for each in found if each.example == name} for name in chosen}
    return 0 if all(len(each) == 1 for each in outcomes.values()) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
