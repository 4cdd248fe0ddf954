from __future__ import annotations

import pytest

from ppdm_core.model.errors import BadInput
from warehouse.columns import Column
from warehouse.sinks.csv import Csv


@pytest.mark.parametrize("text", ["=1+1", "+a", "-a", "@a", "\ta"])
def test_check_columns_formula_refused(text: str) -> None:
    label = Column("c", "label", "categorical", categories=("a", text))
    with pytest.raises(BadInput, match="formula") as caught:
        Csv().check_columns([Column("x", "feature", "numeric"), label], {})
    assert caught.value.column == "c" and "1+1" not in str(caught.value)
    with pytest.raises(BadInput, match="formula"):
        Csv().check_columns([Column(text, "feature", "numeric")], {})


def test_check_columns_not_released_not_checked() -> None:
    Csv().check_columns([Column("=id", "identifier"), Column("a-b", "feature", "numeric")], {})
