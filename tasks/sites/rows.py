"""The sanitized rows that a site sends, and its rows in the pool that comes back."""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ppdm_core.model.arrays import Bools, Codes, Floats
from ppdm_core.model.errors import BadInput, Defect
from ppdm_core.model.manifest import NAME
from tasks.context import ReleaseContext
from warehouse.database import get_run
from warehouse.messages.payloads import SiteRows, decode_bytes, encode_bytes
from warehouse.publishing.publish import DATA, find_latest_version
from warehouse.stage_facts import SanitizedFacts
from warehouse.stages import Stage

if TYPE_CHECKING:
    import pyarrow as pa

SENT_STAGES = (Stage.PUBLISHED, Stage.NO_CHANGE)


@dataclass(frozen=True, eq=False)
class ReleasedTable:
    """Released rows in memory: numbers, and codes of the label."""

    Y: Floats  # (m, s)
    label: Codes  # (m,) -1 without a label
    digest: str  # of the file

    def scale(self, sanitized: SanitizedFacts) -> Floats:
        """Return the numbers in the units of the draws of a release."""
        if not sanitized.same_columns:
            return self.Y
        scaling = sanitized.scaling
        return np.asarray((self.Y - scaling.offset) / scaling.unit)

    def pack(self) -> np.ndarray:
        """Return each row as one value that can be compared."""
        table = np.ascontiguousarray(np.column_stack([self.Y + 0.0, self.label.astype(np.float64)]))
        return table.view(np.dtype((np.void, table.itemsize * table.shape[1]))).ravel()


def parse_table(
    name: str, text: str, columns: tuple[str, ...], context: ReleaseContext
) -> ReleasedTable:
    """Return the rows of a Parquet file in a message; raise BadInput if it holds anything else."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    label = context.label
    expected = (*columns, *((label.name,) if label else ()))
    try:
        raw = decode_bytes(text)
        table = pq.read_table(io.BytesIO(raw))
    except (ValueError, pa.ArrowException, OSError):
        raise bad_rows(name, "are no Parquet file") from None
    if tuple(table.column_names) != expected:
        raise bad_rows(name, "have other columns than the roll")
    if any(table.schema.field(each).type != pa.float64() for each in columns):
        raise bad_rows(name, "have a column that is not numeric")
    Y = np.column_stack([table.column(each).to_numpy() for each in columns])
    if not len(Y) or not np.all(np.isfinite(Y)):
        raise bad_rows(name, "are empty, or hold values that are not numbers")
    codes = encode_label(table, context) if label else np.full(len(Y), -1, dtype=np.int32)
    if label and (codes < 0).any():
        raise bad_rows(name, "have a label that the roll does not declare")
    return ReleasedTable(Y, codes, hashlib.sha256(raw).hexdigest())


def encode_label(table: pa.Table, context: ReleaseContext) -> Codes:
    """Return the codes of the released labels, -1 for one that is not declared."""
    import pyarrow as pa
    import pyarrow.compute as pc

    assert context.label is not None
    categories = pa.array(context.label.categories, pa.string())
    try:
        values = table.column(context.label.name).cast(pa.string())
    except pa.ArrowException:  # such as a list, or bytes that are no text
        return np.full(table.num_rows, -1, dtype=np.int32)
    found = pc.fill_null(pc.index_in(values, categories), -1)
    return np.asarray(found.to_numpy(), dtype=np.int32)


def bad_rows(name: str, what: str) -> BadInput:
    """Return the error of rows in a message that cannot be used."""
    return BadInput(f"The rows of '{name}' {what}.", remedy="Ask that party what it sent.")


def build_rows(context: ReleaseContext, release_id: str) -> SiteRows:
    """Return the published version of this site as a message; without rows if there is none."""
    store = context.open_store()
    with store.transaction(release_id) as db:
        run = get_run(db, release_id)
        version = find_latest_version(db, context.dataset)
    if run.stage not in SENT_STAGES:
        return SiteRows(outcome="FAIL")
    if version is None:
        raise Defect(f"{release_id} has no published version.")
    folder = store.home.published / context.dataset / f"{version.number:04d}"
    return SiteRows(
        outcome="PASS",
        manifest=(folder / NAME).read_text(),
        data=encode_bytes((folder / DATA).read_bytes()),
    )


def find_own_rows(pool: ReleasedTable, own: ReleasedTable) -> Bools:
    """Return which rows of the pool are those of this site; raise BadInput if one is missing.

    Of several equal rows, as many are its own as it sent.
    """
    both = np.concatenate([pool.pack(), own.pack()])
    _, number = np.unique(both, return_inverse=True)
    in_pool, sent = number[: len(pool.Y)], number[len(pool.Y) :]
    counts = np.bincount(sent, minlength=int(number.max()) + 1)
    order = np.argsort(in_pool, kind="stable")
    ranked = in_pool[order]
    rank = np.arange(len(ranked)) - np.searchsorted(ranked, ranked, side="left")
    is_own = np.zeros(len(in_pool), dtype=np.bool_)
    is_own[order] = rank < counts[ranked]
    if int(is_own.sum()) != len(own.Y):
        raise BadInput(
            "The pool does not hold the rows of this site as they were sent.",
            remedy="Nothing was published. Ask the centre what it pooled.",
        )
    if is_own.all():
        raise BadInput(
            "The pool holds no row of another site.",
            remedy="Nothing was published. Ask the centre what it pooled.",
        )
    return is_own
