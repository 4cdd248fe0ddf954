"""The release file of a release in review, and the approvals so far by its rules."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ppdm_core.model.verdict import Review, Verdict
from warehouse.approvals import Standing, count_approvals
from warehouse.integrity.seals import read_sealed_rows
from warehouse.tables import PENDING_FILES

if TYPE_CHECKING:
    from warehouse.transaction import Transaction


def find_pending_file(db: Transaction, release_id: str) -> dict[str, Any] | None:
    """Return the release file that a REVIEW was reached with, or None if none was stored."""
    rows = read_sealed_rows(db, PENDING_FILES, "release_id = ?", [release_id])
    return json.loads(rows[0]["file"]) if len(rows) == 1 else None


def find_standing(
    db: Transaction, release_id: str, verdict: Verdict | None, at: datetime | None = None
) -> Standing | None:
    """Return the approvals of a release by the rules of its own file; None if it has none."""
    file = find_pending_file(db, release_id)
    if file is None or verdict is None:
        return None
    return count_approvals(db, release_id, verdict, Review(**file["review"]), at)
