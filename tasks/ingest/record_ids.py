"""The column by which all releases of a dataset know its records."""

from __future__ import annotations

from ppdm_core.model.errors import BadInput
from tasks.context import ReleaseContext
from warehouse.runs import list_record_ids
from warehouse.transaction import Transaction


def check_record_id(db: Transaction, context: ReleaseContext) -> None:
    """Check that earlier releases used the same record id, by which the ledger knows records."""
    known = list_record_ids(db, context.dataset)
    if context.record_id and known and context.record_id not in known:
        raise BadInput(
            f"Earlier releases of '{context.dataset}' knew records by '{min(known)}', not by "
            f"'{context.record_id}': the ledger could not recognise them.",
            column=context.record_id,
            remedy="Keep the record_id; give the column its old name if it was renamed.",
        )
