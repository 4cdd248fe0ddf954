"""The identifier of every record as the label, which is released unchanged."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.e2e.conftest import Maker
from tests.support.small_release import Small


def use_id(release: Small) -> None:
    """Release the identifier itself as the label; then no record id is left."""
    del release.content["dataset"]["record_id"]
    release.content["columns"]["person"] = label_of(release)
    release.content["sanitizer"]["basis"] = "private"
    del release.content["sanitizer"]["basis_share"]


def use_copy(release: Small) -> None:
    """Release a copy of the identifier under another name."""
    release.rows = [{**row, "copy": row["person"]} for row in release.rows]
    release.content["columns"]["copy"] = label_of(release)


def label_of(release: Small) -> dict[str, object]:
    return {"role": "label", "categories": [row["person"] for row in release.rows]}


@pytest.mark.slow
@pytest.mark.parametrize("change", [use_id, use_copy])
def test_release_identifier_as_label_not_published(
    change: Callable[[Small], None], small: Maker
) -> None:
    release = small()
    release.content["columns"]["mood"] = {"role": "exclude"}
    change(release)
    result = release.write().run("", entry="prepared")
    assert result.exit_code == 0 and result.stdout != "published\n", result
    assert release.versions() == []
