from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.sealed_home import begin, judge, new_store
from warehouse.database import Store
from warehouse.home import Home


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A run with a sealed verdict: six events. Tests roll back whatever they do to it."""
    store = new_store(tmp_path_factory.mktemp("template"))
    judge(store, begin(store))
    return store


@pytest.fixture
def judged(template: Store, tmp_path: Path) -> Store:
    """The same, to be changed for good."""
    shutil.copytree(template.home.root, tmp_path / "copy")
    return Store(Home(tmp_path / "copy"))
