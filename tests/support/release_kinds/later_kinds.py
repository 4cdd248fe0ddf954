"""Kinds that were invented after the detectors, without knowledge of their features."""

from __future__ import annotations

from tests.support.release_kinds.kinds import Kind
from tests.support.release_kinds.later_columns import LATER_COLUMNS
from tests.support.release_kinds.later_noise import LATER_NOISE
from tests.support.release_kinds.later_pairs import LATER_PAIRS
from tests.support.release_kinds.later_records import LATER_RECORDS
from tests.support.release_kinds.later_rows import LATER_ROWS

LATER_KINDS: tuple[Kind, ...] = (
    *LATER_RECORDS,
    *LATER_PAIRS,
    *LATER_NOISE,
    *LATER_ROWS,
    *LATER_COLUMNS,
)
