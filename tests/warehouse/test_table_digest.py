from __future__ import annotations

import pytest

from warehouse.scratch import open_scratch_database
from warehouse.table_digest import content_digest


def digest(values: str) -> str:
    with open_scratch_database() as db:
        db.execute(f"create table t as select * from (values {values}) as v (a, b)")
        return content_digest(db, "t", ["a", "b"])


def test_content_digest_other_order_equal() -> None:
    assert digest("(1, 'x'), (2, 'y')") == digest("(2, 'y'), (1, 'x')")


@pytest.mark.parametrize(
    "other",
    [
        "(1, 'x'), (1, 'x'), (2, 'z')",
        "(2, 'y'), (2, 'y'), (2, 'y')",  # pairs of equal rows do not cancel each other
        "(1, 'x'), (2, 'y')",
        "(1, 'x'), (1, 'x'), (2, 'y'), (2, 'y')",
        "(1, 'x'), (1, 'x'), (2, null)",
    ],
)
def test_content_digest_other_rows_differ(other: str) -> None:
    assert digest(other) != digest("(1, 'x'), (1, 'x'), (2, 'y')")
