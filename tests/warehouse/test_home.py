from __future__ import annotations

from pathlib import Path

import pytest

from ppdm_core.model.errors import BadInput
from warehouse.home import Home


def test_create_private_folder_mode_for_owner_alone(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.create()
    assert home.private.stat().st_mode & 0o777 == 0o700


def test_create_link_in_place_of_private_bad_input(tmp_path: Path) -> None:
    home, other = Home(tmp_path / "home"), tmp_path / "other"
    for folder in (home.root, other):
        folder.mkdir()
    home.private.symlink_to(other)
    with pytest.raises(BadInput, match=r"'private' of the home .* is a link"):
        home.create()
    assert list(other.iterdir()) == []
