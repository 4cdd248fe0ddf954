"""What a reproduction keeps, draws and writes: results, versions of code, pictures, pages, map."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from ppdm_core.model.score import Score
from studies.reproduction import results
from studies.reproduction.code_version import compute_version, find_needed
from studies.reproduction.decision import Decided, decide_again
from studies.reproduction.draw_map import draw_frontier, draw_heat_map, mark_missed
from studies.reproduction.map_text import describe_goals, describe_map
from studies.reproduction.measurement import Measurement
from studies.reproduction.method_map import SETTINGS, Audited, MapFile, list_risks
from studies.reproduction.page_cells import explain, find_worst, format_finding
from studies.reproduction.page_text import Grid, Paragraph, render_block, render_html
from studies.reproduction.picture import Picture
from studies.reproduction.pictures import draw_picture
from studies.reproduction.registry import select_claims
from studies.reproduction.releases import filter_privacy, measure_privacy

JOB = Measurement("salary_example", "", "{}", 1, False)


def write_modules(root: Path, **bodies: str) -> None:
    for name, body in bodies.items():
        path = root / "studies" / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(body)


def test_compute_version_of_changed_code_differs_only_where_it_is_needed(tmp_path: Path) -> None:
    bodies = {
        "__init__": "from studies import unrelated\n",
        "experiment": "def run():\n    from studies.helper import x\n    return x\n",
        "helper": "import numpy\nx = 1\n",
        "unrelated": "y = 1\n",
    }
    roots = [tmp_path / name for name in ("first", "same", "other")]
    changes: list[dict[str, str]] = [{}, {"unrelated": "y = 2\n"}, {"helper": "x = 2\n"}]
    for root, change in zip(roots, changes, strict=True):
        root.mkdir()
        write_modules(root, **{**bodies, **change})
    assert find_needed("studies.experiment", roots[0]) == {"studies.experiment", "studies.helper"}
    first, same, other = (compute_version("studies.experiment", root) for root in roots)
    assert first == same != other


def test_find_known_prefers_the_present_code_and_falls_back_to_the_committed_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    committed = {JOB: results.Result({"q": [1.0]}, 2.0, "old")}
    monkeypatch.setattr(results, "read_committed_results", lambda: committed)
    (old,) = results.find_known(tmp_path, [JOB]).values()
    assert not old.is_current(JOB)
    results.write_result(results.find_result(tmp_path, JOB), JOB, {"q": [3.0]}, 4.0)
    (new,) = results.find_known(tmp_path, [JOB]).values()
    assert (new.quantities, new.seconds, new.is_current(JOB)) == ({"q": [3.0]}, 4.0, True)


def test_write_results_of_several_measurements_reads_the_same(tmp_path: Path) -> None:
    other = Measurement("salary_example", "wine", '{"b": 1}', 3, True)
    given = {
        JOB: results.Result({"a": [1.0], "b": [2.0, 3.0]}, 0.5, "x"),
        other: results.Result({"a": [4.0]}, 1.5, "y"),
    }
    results.write_results(tmp_path / "all.parquet", given)
    assert results.read_results(tmp_path / "all.parquet") == given


def test_filter_privacy_with_noise_across_the_data_removes_it() -> None:
    # Records are on a diagonal and the noise is at right angles to it.
    t, noise = np.linspace(0.0, 1.0, 101), 0.1 * np.cos(np.arange(101) * np.pi)
    X = np.column_stack([t, t])
    X_hat = X + np.column_stack([noise, -noise])
    assert measure_privacy(X, X_hat) == pytest.approx(0.2)
    assert filter_privacy(X, X_hat, 2) < 0.01


def test_draw_picture_of_single_values_names_each_label(tmp_path: Path) -> None:
    picture = Picture("x", "P9 figure 1", "x", "e", values={"ours": "gain", "theirs": "loss"})
    quantities = {"gain": [0.1, 0.2], "loss": [-0.1, -0.2]}
    assert not draw_picture(picture, {"wine": {"gain": [0.1]}}, [], tmp_path / "none.svg")
    assert draw_picture(picture, {"wine": quantities}, [], tmp_path / "x.svg")
    text = (tmp_path / "x.svg").read_text()
    assert all(word in text for word in ("ours", "theirs", "wine"))


def test_draw_picture_of_points_and_clouds_names_labels_and_axes(tmp_path: Path) -> None:
    points = Picture(
        "p", "P9 figure 1", "x", "e", points={"ours": [("q", "r")]}, label="privacy", up="quality"
    )
    quantities = {"q": [0.1, 0.2], "r": [0.5, 0.6]}
    assert draw_picture(points, {"wine": quantities, "iris": {}}, [], tmp_path / "p.svg")
    clouds = Picture(
        "c", "P9 figure 2", "x", "e", clouds={"left": {"one": ("q", "r")}}, tables=("wine",)
    )
    assert not draw_picture(clouds, {"iris": quantities}, [], tmp_path / "none.svg")
    assert draw_picture(clouds, {"wine": quantities}, [], tmp_path / "c.svg")
    text = (tmp_path / "p.svg").read_text() + (tmp_path / "c.svg").read_text()
    assert all(word in text for word in ("ours", "privacy", "quality", "wine", "left", "one"))


def test_render_html_of_a_wide_table_has_headings_in_its_cells(tmp_path: Path) -> None:
    headings = ("claim", "two", "three", "four", "five", "six")
    page = render_html(
        "Title", [Grid(headings, [("**P0.C1** `b`", "2", "3", "4", "5", "<6>")])], tmp_path
    )
    assert '<td data-label="claim"><b>P0.C1</b> <code>b</code></td>' in page
    assert '<td data-label="six">&lt;6&gt;</td>' in page
    assert 'class="wide"' in page
    assert "prefers-color-scheme: dark" in page
    assert "width=device-width" in page
    assert render_block(Paragraph("a & b"), tmp_path) == "<p>a &amp; b</p>"


def test_find_worst_of_open_statements_takes_the_one_that_is_mostly_outside() -> None:
    (claim,) = select_claims(id="P0.C12")
    near, far = (
        Decided(f"measured gamma/b=0.3/{table}", 26.0, low, high, 5, (0.0, 0.0), None)
        for table, low, high in (("wine", 25.1, 29.0), ("iris", 24.6, 25.8))
    )
    for order in ((near, far), (far, near)):
        assert find_worst(decide_again(claim, order)).quantity.endswith("iris")


def test_explain_without_results_for_a_changed_rule_says_so() -> None:
    (claim,) = select_claims(id="P0.C12")
    finding = decide_again(claim, ())
    assert "not measured" in explain(finding)
    assert "not measured" in format_finding(finding)[2]


def test_format_finding_of_another_reading_says_which_is_counted() -> None:
    (counted,), (other,) = select_claims(id="P0.C4b"), select_claims(id="P0.C4")
    assert "Not counted: another reading of P0.C4b." in format_finding(decide_again(other, ()))[0]
    assert "Not counted" not in format_finding(decide_again(counted, ()))[0]


def make_score(name: str, value: float, better: str = "down") -> Score:
    return Score(name, "privacy", better, value, value, value, 10, 0.1, value)  # type: ignore[arg-type]


def test_list_risks_takes_the_rate_over_all_records() -> None:
    scores = [
        make_score("record_linkage.rate", 0.4),
        make_score("record_linkage.few.rate", 1.0),
        make_score("membership.true_positive_rate", 0.3),
        make_score("membership.auc", 0.9),
        make_score("known_pairs.relative_error", 0.2, "up"),
        make_score("neighbour_change", 0.2),
    ]
    assert dict(list_risks(scores)) == {"record_linkage": (0.4, 0.1), "membership": (0.3, 0.1)}


def make_map() -> list[Audited]:
    """Return a map in which the first method is the best one."""
    found = []
    for table, (place, method) in product(("iris", "wine"), enumerate(SETTINGS)):
        risks = {"record_linkage": (0.05 + 0.15 * place, 0.01), "membership": (0.1, 0.1)}
        for attacks in ("none", "most", "all"):
            found.append(Audited(table, method, {}, 1, attacks, 0.8, 0.9, risks, 1.5))
    return found


def test_describe_map_names_the_method_with_the_least_risk() -> None:
    sentences = list(describe_map(make_map()))
    first, *_, last = SETTINGS
    assert len(sentences) <= 10
    assert f"{first} has the least risk" in sentences[2]
    assert f"{last} 94 points (2)" in sentences[2]
    assert sentences[-1].startswith(f"So, of these methods, use {first} today")


def test_describe_map_leaves_out_methods_that_miss_the_common_utility() -> None:
    first, second, *_ = SETTINGS
    audits = [replace(each, share=0.2) if each.method == first else each for each in make_map()]
    sentences = list(describe_map(audits))
    assert f"no setting of ours comes so near for {first} on 2 of 2 tables" in sentences[1]
    assert f"{second} has the least risk" in sentences[2]
    assert not any(first in sentence for sentence in sentences[2:])
    assert mark_missed(audits[0], first) == f"{first} *"
    assert sentences[-1].startswith(f"So, of these methods, use {second} today")


def test_describe_map_without_a_useful_method_recommends_none() -> None:
    sentences = list(describe_map([replace(each, share=0.1) for each in make_map()]))
    assert sentences[-1].startswith("No method comes near")


def test_describe_goals_counts_attacks_that_remain_without_reconstruction() -> None:
    prevented = {"known_pairs": (0.1, 0.05), "membership": (0.7, 0.5), "record_linkage": (0.9, 0.1)}
    broken = {"known_pairs": (0.9, 0.05), "membership": (0.9, 0.5)}
    cases = [
        Audited("iris", method, {}, 1, "all", 0.8, 0.9, risks)
        for method, risks in (("a", prevented), ("b", broken))
    ]
    sentence = describe_goals(cases)
    assert sentence.startswith("In 1 of 2 cases no reconstruction")
    assert "in 1 of these" in sentence
    assert "record_linkage (1)" in sentence


def test_draw_map_has_every_method_attack_and_table(tmp_path: Path) -> None:
    draw_heat_map(make_map(), tmp_path / "map.svg")
    draw_frontier(make_map(), tmp_path / "frontier.svg")
    heat, frontier = ((tmp_path / name).read_text() for name in ("map.svg", "frontier.svg"))
    for word in (*SETTINGS, "iris", "wine"):
        assert word in heat
        assert word in frontier
    assert "record_linkage" in heat


def test_map_file_with_a_finished_audit_does_not_repeat_it(tmp_path: Path) -> None:
    wanted = Audited("no such table", "random_rotation", {}, 1, "none")
    path = tmp_path / "map.jsonl"
    path.write_text(
        '{"table": "no such table", "method": "random_rotation", "parameters": {}, "draws": 1, '
        '"attacks": "none", "share": 0.5, "accuracy": 0.7, "risks": {}, "seconds": 2.0}\n'
    )
    assert MapFile(path).audit(wanted).share == 0.5
