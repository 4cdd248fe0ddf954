"""The report of a defect in the private folder: places in this program's code, no value."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from ppdm_core.model.errors import Defect
from warehouse.code_version import compute_code_version


def write_defect_report(home: Path, defect: Defect) -> Defect:
    """Write the report of a defect, unless it has one; return the defect with its path."""
    if defect.report is not None:
        return defect
    folder = home / "private" / "defects"
    folder.mkdir(parents=True, exist_ok=True)
    report = folder / f"{datetime.now(UTC):%Y%m%d-%H%M%S}.txt"
    lines = (f"code {compute_code_version()}", defect.message, *defect.trace)
    report.write_text("\n".join(lines) + "\n")
    remedy = f"Nothing was published. Please report it; the places are in {report}."
    reported = Defect(defect.message, remedy=remedy)
    reported.report = str(report)
    return reported
