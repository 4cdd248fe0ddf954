"""Results of measurements: one Parquet file each, so that a killed run is continued."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from studies.reproduction.code_version import compute_version
from studies.reproduction.decision import Finding
from studies.reproduction.registry import NO_TABLE, Measurement

Quantities = Mapping[str, Sequence[float]]


def find_result(folder: Path, job: Measurement) -> Path:
    """Return the file of a result of the present code."""
    from studies.reproduction.experiments import EXPERIMENTS

    module = EXPERIMENTS[job.experiment].__module__
    digest = job.compute_digest(compute_version(module))
    return folder / f"{job.experiment}-{job.table or 'generated'}-{digest}.parquet"


def measure(job: Measurement) -> tuple[Quantities, float]:
    """Run an experiment, and return its quantities and the processor time in seconds."""
    from studies.reproduction.experiments import EXPERIMENTS

    start = time.process_time()
    found = EXPERIMENTS[job.experiment](job)
    return found, time.process_time() - start


def measure_into(job: Measurement, path: str) -> float:
    """Run an experiment, write its result, and return the processor time; for a child process."""
    found, seconds = measure(job)
    write_result(Path(path), found, seconds)
    return seconds


def write_result(path: Path, quantities: Quantities, seconds: float) -> None:
    """Write quantities by draw; the file appears when it is complete."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [(name, i, v) for name, values in quantities.items() for i, v in enumerate(values)]
    names, draws, values = zip(*rows, strict=True)
    table = pa.table({"quantity": names, "draw": draws, "value": values})
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(f".{os.getpid()}.partial")
    pq.write_table(table.replace_schema_metadata({"seconds": f"{seconds:.3f}"}), partial)
    partial.replace(path)


def read_result(path: Path) -> tuple[dict[str, list[float]], float]:
    """Return the quantities of a result by name, and its processor time."""
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    found: dict[str, list[float]] = {}
    for name, value in zip(
        table.column("quantity").to_pylist(), table.column("value").to_pylist(), strict=True
    ):
        found.setdefault(name, []).append(value)
    return found, float(table.schema.metadata[b"seconds"])


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
