from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from ppdm.cli.ledger import check_plot
from ppdm.cli.ledger_plot import draw_ledger
from ppdm_core.model.errors import BadInput
from tests.support.ledger_rows import make_entries


def draw(path: Path, **changes: object) -> bytes:
    *others, last = make_entries()
    draw_ledger("wine", [*others, {**last, **changes}], path)
    return path.read_bytes()


@pytest.mark.slow
def test_draw_ledger_twice_same_bytes(tmp_path: Path) -> None:
    for suffix in ("svg", "png"):
        one, two = draw(tmp_path / f"a.{suffix}"), draw(tmp_path / f"b.{suffix}")
        assert one == two and len(one) > 5_000
    assert b"<dc:date>" not in (tmp_path / "a.svg").read_bytes()


def test_draw_ledger_svg_names_what_it_shows(tmp_path: Path) -> None:
    draw(tmp_path / "a.svg", kind="refused")
    words = "".join(ElementTree.parse(tmp_path / "a.svg").getroot().itertext())
    for word in ("wine: gamma of all releases", "spent", "limit", "refused", "22,026"):
        assert word in words


@pytest.mark.extended
@pytest.mark.parametrize(
    "changes", [{"ln_total": None}, {"terms": {}}, {"ln_total": None, "kind": "refused"}]
)
def test_draw_ledger_no_bound_or_limit_is_drawn(changes: dict[str, object], tmp_path: Path) -> None:
    assert draw(tmp_path / "a.svg", **changes) != draw(tmp_path / "b.svg")


def test_check_plot_other_suffix_raises(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="SVG or PNG") as problem:
        check_plot(tmp_path / "a.pdf")
    assert problem.value.remedy == "Name a file that ends in .svg or .png."
