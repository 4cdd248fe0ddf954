"""`ppdm init` on generated tables: the label."""

from __future__ import annotations

from pathlib import Path

import pytest

from ppdm.cli.init import Decided, draft_file
from ppdm_core.model.errors import BadInput
from tests.support.drafts import NOISE, Cell, draft_table, read_roles, write_table


@pytest.mark.parametrize(
    ("cells", "categories", "outside", "missing"),
    [
        (lambda i: "ab"[i % 2], ["a", "b"], None, None),
        (lambda i: "rare" if i < 9 else "ab"[i % 2], ["a", "b"], "drop_row", None),
        (lambda i: "rare" if i < 10 else "ab"[i % 2], ["a", "b", "rare"], None, None),
        (lambda i: "" if i < 9 else "ab"[i % 2], ["a", "b"], None, "drop_row"),
        (lambda i: ("1", "1.0", " 1")[i % 3], [" 1", "1", "1.0"], None, None),
        (lambda i: str(i % 3), ["0", "1", "2"], None, None),
        (lambda i: ('<=5 "K"', "it's")[i % 2], ['<=5 "K"', "it's"], None, None),
    ],
)
def test_draft_label_lists_categories_of_enough_records(
    tmp_path: Path, cells: Cell, categories: list[str], outside: str | None, missing: str | None
) -> None:
    file, result, _ = draft_table(
        write_table(tmp_path, {"income": cells, "last": lambda i: NOISE[-i]})
    )
    found = file.columns["income"]
    assert (found.role, found.categories) == ("label", categories)
    assert (found.outside, found.missing) == (outside, missing)
    assert read_roles(result)["income"] == ("label", "named like a class")
    assert "label.rate" in file.limits
    assert "best_accuracy" not in file.limits  # no limit on utility was asked for


NO_LABELS: dict[str, Cell] = {
    "one class": lambda i: "a" if i > 5 else "b",
    "too many dropped": lambda i: f"rare {i}" if i % 6 == 0 else "ab"[i % 2],
    "too many classes": lambda i: f"c{i % 40}",
    "fractions": lambda i: ("0.5", "1.5")[i % 2],
    "dates": lambda i: f"2021-01-0{1 + i % 3}",
    "control characters": lambda i: ("a\tb", "c")[i % 2],
}


@pytest.mark.parametrize("case", NO_LABELS)
def test_draft_unfit_column_is_no_label(tmp_path: Path, case: str) -> None:
    source = write_table(tmp_path, {"class": NO_LABELS[case], "last": lambda i: NOISE[-i]})
    assert read_roles(draft_table(source)[1])["class"][0] in ("exclude", "feature")


def test_draft_label_best_name_before_first_or_last_column(tmp_path: Path) -> None:
    def two(i: int) -> str:
        return "ab"[i % 2]

    def label(*names: str) -> str | None:
        result = draft_table(write_table(tmp_path, dict.fromkeys(names, two)))[1]
        return next(
            (name for name, (role, _) in read_roles(result).items() if role == "label"), None
        )

    assert label("ward type", "class", "ward") == "class"
    assert label("ward", "ward type", "last") == "ward type"
    assert label("ward", "last") == "last"
    source = write_table(tmp_path, {"last": lambda i: NOISE[-i]})
    source.write_text(
        "\n".join(
            f"{'hm'[i % 2] if i else 'ward'},{line}"
            for i, line in enumerate(source.read_text().splitlines())
        )
        + "\n"
    )
    assert read_roles(draft_table(source)[1])["ward"][0] == "label"


@pytest.mark.parametrize(("label", "words"), [("d", "no column 'd'"), ("a", "cannot be the label")])
def test_draft_label_of_other_columns_bad_input(tmp_path: Path, label: str, words: str) -> None:
    source, out = tmp_path / "t.csv", tmp_path / "t.toml"
    rows = [f"{i * 37 % 101},{i % 7},{'xy'[i % 2]}" for i in range(200)]
    source.write_text("\n".join(["a,b,c", *rows]))
    with pytest.raises(BadInput, match=words):
        draft_file(source, out, None, Decided(label=label))
    assert not out.exists()
