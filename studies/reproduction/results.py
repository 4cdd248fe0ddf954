"""Results of measurements.

In a home each is one Parquet file, so that a killed run is continued. The results behind the
committed page are in one file beside this one, so that the page can be written again without them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import lru_cache
from pathlib import Path

from studies.reproduction.code_version import compute_version
from studies.reproduction.decision import Finding
from studies.reproduction.measurement import NO_TABLE, Measurement
from studies.reproduction.registry import FOLDER

Quantities = Mapping[str, Sequence[float]]
COMMITTED = FOLDER / "results.parquet"
COLUMNS = (
    "experiment",
    "table",
    "parameters",
    "draws",
    "is_full",
    "version",
    "seconds",
    "quantity",
    "draw",
    "value",
)


@dataclass(frozen=True)
class Result:
    """The quantities of a measurement by name, one value for each draw."""

    quantities: Quantities
    seconds: float  # of processor time
    version: str  # of the code

    def is_current(self, job: Measurement) -> bool:
        """Return whether the present code made it."""
        return self.version == find_version(job)


def find_version(job: Measurement) -> str:
    """Return the version of the code of an experiment."""
    from studies.reproduction.experiments import EXPERIMENTS

    return compute_version(EXPERIMENTS[job.experiment].__module__)


def find_result(folder: Path, job: Measurement) -> Path:
    """Return the file of a result of the present code."""
    digest = job.compute_digest(find_version(job))
    return folder / f"{job.experiment}-{job.table or 'generated'}-{digest}.parquet"


def find_known(folder: Path, jobs: Iterable[Measurement]) -> dict[Measurement, Result]:
    """Return the results of the present code, or else the committed ones, which may be older."""
    committed = read_committed_results()
    found = {}
    for job in jobs:
        path = find_result(folder, job)
        if path.exists():
            found[job] = read_result(path)
        elif job in committed:
            found[job] = committed[job]
    return found


def measure(job: Measurement) -> tuple[Quantities, float]:
    """Run an experiment, and return its quantities and the processor time in seconds."""
    from studies.reproduction.experiments import EXPERIMENTS

    start = time.process_time()
    found = EXPERIMENTS[job.experiment](job)
    return found, time.process_time() - start


def measure_into(job: Measurement, path: str) -> float:
    """Run an experiment, write its result, and return the processor time; for a child process."""
    found, seconds = measure(job)
    write_result(Path(path), job, found, seconds)
    return seconds


def write_result(path: Path, job: Measurement, quantities: Quantities, seconds: float) -> None:
    """Write one result; the file appears when it is complete."""
    write_results(path, {job: Result(quantities, seconds, find_version(job))})


def write_results(path: Path, results: Mapping[Measurement, Result]) -> None:
    """Write quantities by measurement and draw."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [
        (*astuple(job), result.version, round(result.seconds, 3), name, draw, value)
        for job, result in results.items()
        for name, values in result.quantities.items()
        for draw, value in enumerate(values)
    ]
    columns = dict(zip(COLUMNS, zip(*rows, strict=True), strict=True))
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(f".{os.getpid()}.partial")
    pq.write_table(pa.table(columns), partial, compression="zstd")
    partial.replace(path)


def read_result(path: Path) -> Result:
    """Return the result in a file of a home."""
    (result,) = read_results(path).values()
    return result


def read_results(path: Path) -> dict[Measurement, Result]:
    """Return all results of a file."""
    import pyarrow.parquet as pq

    found: dict[Measurement, Result] = {}
    table = pq.read_table(path).select(COLUMNS).to_pydict()
    for *fields, version, seconds, name, _, value in zip(*table.values(), strict=True):
        result = found.setdefault(Measurement(*fields), Result({}, seconds, version))
        assert isinstance(result.quantities, dict)
        result.quantities.setdefault(name, []).append(value)
    return found


@lru_cache(maxsize=1)
def read_committed_results(path: Path = COMMITTED) -> Mapping[Measurement, Result]:
    """Return the results behind the committed page; nothing if there is none."""
    return read_results(path) if path.exists() else {}


def name_quantities(job: Measurement, quantities: Quantities) -> dict[str, Sequence[float]]:
    """Return quantities under the names that claims use, with the table at the end."""
    ending = "" if job.table == NO_TABLE else f"/{job.table}"
    return {f"{name}{ending}": values for name, values in quantities.items()}


def write_findings(path: Path, findings: Sequence[Finding]) -> None:
    """Write all statements with their verdicts."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [
        {
            "claim": finding.claim.id,
            "verdict": str(finding.verdict),
            "quantity": each.quantity,
            "value": each.value,
            "low": each.low,
            "high": each.high,
            "draws": each.draws,
            "claimed_low": each.claimed[0],
            "claimed_high": each.claimed[1],
            "is_true": each.is_true,
        }
        for finding in findings
        for each in finding.decided
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), path)
