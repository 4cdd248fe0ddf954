"""The order of the rows of a release, which follows from its content.

Ranks that followed from the record alone would leave a changed record between its neighbours, so
that its old and its new row could be put together. Here a release in which anything changed has
another digest, and is shuffled independently of all others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ppdm_core.model.arrays import Keys
from ppdm_core.model.rows import Block, Rows
from ppdm_core.numerics.noise import Noise
from ppdm_core.sanitizers._sanitizer import encode_codes

if TYPE_CHECKING:
    import pyarrow as pa


def digest_content(draws: pa.RecordBatchReader, records: Rows, noise: Noise) -> bytes:
    """Return a digest of the draws of a run and of the labels of its records.

    It consists of sums, so that the order of the source does not matter, and is known before a row
    is written. The names of the draws cover records, values and mechanism.
    """
    sums = *sum_draw_names(draws), sum_labels(records, noise)
    return b"".join((total % 2**64).to_bytes(8, "little") for total in sums)


def sum_draw_names(draws: pa.RecordBatchReader) -> tuple[int, int]:
    """Return the sums of both halves of the names of what a candidate draws."""
    high = low = 0
    for batch in draws:
        high += int(batch["draw_high"].to_numpy().sum())  # modulo 2^64
        low += int(batch["draw_low"].to_numpy().sum())
    return high, low


def sum_labels(records: Rows, noise: Noise) -> int:
    """Return the sum of keyed numbers, one for each record with its label."""

    def step(block: Block) -> int:
        labelled = block.key.copy()
        labelled[:, :4] ^= encode_codes(block.label[:, None])
        return int(noise.ranks(labelled, "label").sum())  # modulo 2^64

    return records.reduce(step, lambda a, b: a + b)


def rank_rows(key: Keys, noise: Noise, content: bytes) -> NDArray[np.uint64]:
    """Return the rank of each row in a release with this content; keys decide between equals."""
    return noise.ranks(key, "row order", content)
