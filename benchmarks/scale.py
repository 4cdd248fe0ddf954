"""`python -m benchmarks.scale ROWS...`: release large tables from a folder of Parquet files.

Each size is released by the command line in a process of its own. The largest memory of the command
and of the attack process is read from /proc (Linux), and DuckDB copies the same folder to show what
reading and writing alone cost.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from benchmarks.harness import log

COLUMNS = 20
ROWS_PER_FILE = 500_000
CLASSES = ("a", "b", "c")
POLL_SECONDS = 0.2
ATTACK_PROCESS = "tasks.audit.attack_worker"
RELEASE = """\
format = 1
[dataset]
name = "large"
owner = "benchmark"
audience = "benchmark"
record_id = "person"
[source]
kind = "parquet"
path = "table"
[columns]
person = {{ role = "identifier" }}
kind = {{ role = "label", type = "categorical", categories = ["a", "b", "c"] }}
{columns}
[sanitizer]
method = "pca_laplace"
components = 6
b = 0.3
noise_shape = "per_component"
basis = "sample"
basis_share = 0.01
[attacker]
known_records = 40
sample_share = 0.01
[audit]
effort = "{effort}"
required = ["transform_inverse", "shrinkage", "known_pairs", "record_linkage", "membership"]
[limits]
{limits}
"""
LIMITS = {
    "amplification.record": "value = 1e30",
    "record_linkage.rate": "value = 0.2",
    "known_pairs.breach_rate": "value = 0.2",
    "membership.true_positive_rate": "value = 0.2",
    "label.rate": "value = 0.05",
    "knn_accuracy": "value = 0.0, absolute = true",
}


@dataclass(frozen=True)
class ScaleResult:
    """What one release took."""

    rows: int
    effort: str
    outcome: str
    seconds: float
    cpu_seconds: float
    command_mb: float  # largest memory, with imports
    attacks_mb: float
    copy_seconds: float  # of DuckDB, from Parquet to Parquet


def main(argv: Sequence[str] | None = None) -> int:
    """Release tables of the given sizes and print one line for each."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument("rows", nargs="+", type=int, metavar="ROWS")
    parser.add_argument("--effort", default="quick", choices=("quick", "standard"))
    parser.add_argument("--out", type=Path, help="JSON file to write")
    options = parser.parse_args(argv)
    found = []
    for rows in options.rows:
        with tempfile.TemporaryDirectory(prefix="ppdm-scale-") as folder:
            found.append(measure_release(Path(folder), rows, options.effort))
        print(format_result(found[-1]), flush=True)
    print(format_growth(found))
    if options.out:
        options.out.write_text(json.dumps([asdict(each) for each in found], indent=2) + "\n")
    return int(any(each.outcome not in ("published", "awaiting_review") for each in found))


def write_table(folder: Path, rows: int) -> None:
    """Write correlated columns in files of ``ROWS_PER_FILE`` rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir()
    map_ = np.random.default_rng(1).standard_normal((6, COLUMNS))
    for number, start in enumerate(range(0, rows, ROWS_PER_FILE)):
        rng, n = np.random.default_rng([2, number]), min(ROWS_PER_FILE, rows - start)
        Z = rng.standard_normal((n, 6)) @ map_ + 0.5 * rng.standard_normal((n, COLUMNS))
        X = (1.0 / (1.0 + np.exp(-Z / 2))).round(6)
        label = np.array(CLASSES)[np.digitize(Z[:, 0], [-1.0, 1.0])]
        ids = [f"P{start + i:09d}" for i in range(n)]
        named = {f"x{j}": X[:, j] for j in range(COLUMNS)}
        table = pa.table({"person": ids, "kind": label, **named})
        pq.write_table(table, folder / f"part-{number:04d}.parquet", compression="zstd")


def write_release(folder: Path, effort: str) -> Path:
    """Write the release file and return its path."""
    feature = '{ role = "feature", type = "numeric", low = 0, high = 1 }'
    by = 'set_by = "benchmark", reason = "wide, so that the release is published"'
    path = folder / "large.toml"
    text = RELEASE.format(
        columns="\n".join(f"x{j} = {feature}" for j in range(COLUMNS)),
        limits="\n".join(f'"{name}" = {{ {value}, {by} }}' for name, value in LIMITS.items()),
        effort=effort,
    )
    path.write_text(text)
    return path


def measure_release(folder: Path, rows: int, effort: str) -> ScaleResult:
    """Write a table, copy it with DuckDB, and release it."""
    import duckdb

    log(f"writing {rows:,} x {COLUMNS}")
    write_table(folder / "table", rows)
    start = time.perf_counter()
    source, target = folder / "table" / "*.parquet", folder / "copy.parquet"
    duckdb.sql(f"copy (from '{source}') to '{target}' (format parquet, compression zstd)")
    copy_seconds = time.perf_counter() - start
    target.unlink()
    log(f"releasing {rows:,} x {COLUMNS}, {effort}")
    environment = {**os.environ, "PPDM_HOME": str(folder / "home"), "HOME": str(folder)}
    command = [sys.executable, "-m", "ppdm.cli.app", "release", "--json"]
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    process = subprocess.Popen(
        [*command, str(write_release(folder, effort))],
        env=environment,
        cwd=Path(__file__).resolve().parents[1],
        stdout=subprocess.PIPE,
        text=True,
    )
    watch = MemoryWatch(process.pid)
    output, _ = process.communicate()
    seconds = time.perf_counter() - start
    watch.stop()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
    return ScaleResult(
        rows,
        effort,
        read_outcome(output),
        seconds,
        cpu,
        watch.command / 2**20,
        watch.attacks / 2**20,
        copy_seconds,
    )


def read_outcome(output: str) -> str:
    """Return the stage in which the release ended, from the reply of the command."""
    try:
        return str(json.loads(output)["release"]["stage"])
    except (json.JSONDecodeError, KeyError):
        return "failed"


class MemoryWatch:
    """The largest memory of a command and of its attack process, read while they run."""

    def __init__(self, pid: int) -> None:
        self.pid, self.command, self.attacks = pid, 0, 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._poll, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the watch."""
        self._ended.set()
        self._thread.join()

    def _poll(self) -> None:
        while not self._ended.wait(POLL_SECONDS):
            self.command = max(self.command, read_peak(self.pid))
            for child in list_children(self.pid):
                if ATTACK_PROCESS in read_command_line(child):
                    self.attacks = max(self.attacks, read_peak(child))


def read_peak(pid: int) -> int:
    """Return the largest resident memory of a process so far, in bytes; 0 if it is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")), 0)


def list_children(pid: int) -> list[int]:
    """Return the child processes of all threads of a process."""
    found = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += [int(each) for each in path.read_text().split()]
        except OSError:
            continue
    return found


def read_command_line(pid: int) -> str:
    """Return the command line of a process; empty if it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def format_result(found: ScaleResult) -> str:
    """Return one line about a release."""
    ratio = found.seconds / found.copy_seconds
    return (
        f"{found.rows:>12,} x {COLUMNS} {found.effort:8} {found.outcome:10} "
        f"{found.seconds:8.0f} s  {found.cpu_seconds:8.0f} s CPU  "
        f"command {found.command_mb:6.0f} MB  attacks {found.attacks_mb:6.0f} MB  "
        f"copy {found.copy_seconds:6.1f} s (x {ratio:.0f})"
    )


def format_growth(found: Sequence[ScaleResult]) -> str:
    """Return the time per added row from each size to the next."""
    lines = []
    for one, two in pairwise(found):
        each = (two.cpu_seconds - one.cpu_seconds) / max(two.rows - one.rows, 1)
        lines.append(f"{one.rows:,} to {two.rows:,} rows: {each * 1e6:.1f} us CPU per added row")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
