"""A defect of ours leaves a report in the private folder: places in our code, no value."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from ppdm_core.model.errors import Defect
from tasks.context import code_version


def with_report(home: Path, defect: Defect) -> Defect:
    """The defect with the way to its report, which is written unless it was before."""
    if defect.report is not None:
        return defect
    folder = home / "private" / "defects"
    folder.mkdir(parents=True, exist_ok=True)
    report = folder / f"{datetime.now(UTC):%Y%m%d-%H%M%S}.txt"
    lines = (f"code {code_version()}", defect.message, *defect.trace)
    report.write_text("\n".join(lines) + "\n")
    remedy = f"Nothing was published. Please report it; the places are in {report}."
    told = Defect(defect.message, remedy=remedy)
    told.report = str(report)
    return told
