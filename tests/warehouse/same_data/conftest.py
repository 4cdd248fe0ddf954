from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.compared_tables import ComparedTables, open_tables


@pytest.fixture
def home(tmp_path: Path) -> Iterator[ComparedTables]:
    with open_tables(tmp_path / "home") as home:
        yield home
