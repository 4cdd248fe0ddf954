from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import BaseModel

from flows.config.name_checks import KnownNames, check_names
from flows.config.release_file import MODELS, ReleaseFile, load
from flows.config.sections import SanitizerSpec
from ppdm_core.model.errors import BadInput
from ppdm_core.model.policy import Attacker, Limit
from ppdm_core.model.verdict import Review
from ppdm_core.settings.limits import check_limit
from warehouse.columns import Column, Source
from warehouse.sources import SOURCES

EXAMPLES = Path(__file__).parents[3] / "examples"
KINDS = " or ".join(", ".join(map(repr, SOURCES)).rsplit(", ", 1))
GOOD = """
format = 1
[dataset]
name = "wdbc"
owner = "registry"
audience = "partners"
record_id = "patient_id"
[source]
kind = "csv"
path = "data/wdbc.csv"
[columns]
patient_id = { role = "identifier" }
diagnosis = { role = "label", type = "categorical", categories = ["benign", "malignant"] }
radius = { role = "feature", type = "numeric", low = 0, high = 40 }
area.role = "feature"
area.type = "numeric"
area.low = "from_data"
area.high = "from_data"
area.outside = "reject"
area.missing = "median"
stage = { role = "feature", type = "categorical", categories = ["i", "ii"] }
notes = { role = "exclude" }
[defaults]
missing = "drop_row"
[sanitizer]
method = "pca_laplace"
components = { variance = 0.9 }
b = 0.3
[attacker]
known_records = 40
sample_share = 0.05
[audit]
required = ["known_pairs", "record_linkage"]
time_limit = "10 min"
[limits]
"amplification.record" = { value = 1100, set_by = "DPO", reason = "a", waive = ["random_rotation"] }
"known_pairs.breach_rate" = { value = 0.1, set_by = "DPO", reason = "insiders" }
"knn_accuracy" = { value = 0.75, absolute = true, set_by = "partners", reason = "useless below" }
[schedule]
cron = "0 3 * * 1"
timezone = "Europe/Berlin"
"""
RADIUS = 'radius = { role = "feature", type = "numeric", low = 0, high = 40 }'
DIAGNOSIS = ', categories = ["benign", "malignant"] }'


def write(folder: Path, text: str | bytes = GOOD) -> Path:
    path = folder / "release.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def changed(folder: Path, old: str, new: str) -> Path:
    assert GOOD.count(old) == 1
    return write(folder, GOOD.replace(old, new))


def refused(path: Path) -> BadInput:
    with pytest.raises(BadInput) as caught:
        load(path)
    assert caught.value.file == str(path)
    assert caught.value.remedy
    assert caught.value.__cause__ is None and caught.value.__context__ is None
    return caught.value


def test_build_columns_features_get_defaults(tmp_path: Path) -> None:
    assert load(write(tmp_path)).build_columns() == (
        Column("patient_id", "identifier"),
        Column("diagnosis", "label", "categorical", categories=("benign", "malignant")),
        Column("radius", "feature", "numeric", 0.0, 40.0, missing="drop_row"),
        Column("area", "feature", "numeric", "from_data", "from_data", (), "reject", "median"),
        Column("stage", "feature", "categorical", categories=("i", "ii"), missing="drop_row"),
        Column("notes", "exclude"),
    )


@pytest.mark.parametrize("listed", ['"i", "ii"', '"i", "ii", "other"'])
def test_build_columns_outside_other_adds_category(tmp_path: Path, listed: str) -> None:
    path = changed(tmp_path, '["i", "ii"]', f'[{listed}], outside = "other"')
    assert load(path).build_columns()[4].categories == ("i", "ii", "other")


@pytest.mark.parametrize("outside", ["reject", "drop_row"])
def test_build_columns_unlisted_categories_follow_outside(tmp_path: Path, outside: str) -> None:
    path = changed(tmp_path, '["i", "ii"]', f'["i", "ii"], outside = "{outside}"')
    assert load(path).build_columns()[4].outside == outside


def test_build_columns_categorical_missing_keep_is_accepted(tmp_path: Path) -> None:
    path = changed(tmp_path, '["i", "ii"]', '["i", "ii"], missing = "keep"')
    assert load(path).build_columns()[4].missing == "keep"


def test_build_columns_default_median_skips_categorical(tmp_path: Path) -> None:
    columns = load(changed(tmp_path, '"drop_row"', '"median"')).build_columns()
    assert [column.missing for column in columns if column.role == "feature"] == [
        "median",
        "median",
        "reject",
    ]


def test_load_policy_and_parameters_are_read(tmp_path: Path) -> None:
    file = load(write(tmp_path))
    policy = file.build_policy()
    assert policy.required == ("known_pairs", "record_linkage")
    assert policy.attacker == Attacker(40, 0.05, 0.1)
    assert (policy.time_limit, policy.shadow_draws) == (600.0, 3)
    assert policy.limits["amplification.record"] == Limit(
        1100.0, "DPO", "a", waive=("random_rotation",)
    )
    assert policy.limits["knn_accuracy"].absolute
    assert file.sanitizer_parameters() == {"components": {"variance": 0.9}, "b": 0.3}
    file.sanitizer_parameters()["components"]["variance"] = 0.1
    assert file.sanitizer_parameters()["components"] == {"variance": 0.9}


def test_load_relative_paths_start_at_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    monkeypatch.delenv("PPDM_HOME", raising=False)
    file = load(Path("..") / path.name)
    assert file.build_source() == Source("csv", str(tmp_path / "data/wdbc.csv"))
    assert file.home() == tmp_path / ".ppdm"
    monkeypatch.setenv("PPDM_HOME", str(tmp_path / "home"))
    assert file.home() == tmp_path / "home"


def test_build_source_options_are_read(tmp_path: Path) -> None:
    path = changed(tmp_path, 'kind = "csv"', 'kind = "csv"\ndelimiter = ";"\nquote = "\'"')
    assert load(path).build_source().options == {"delimiter": ";", "quote": "'"}


@pytest.mark.parametrize(
    ("text", "seconds"), [('"30 s"', 30.0), ('"1.5 min"', 90.0), ('"2 h"', 7200.0), ("45", 45.0)]
)
def test_load_time_limit_text_becomes_seconds(tmp_path: Path, text: str, seconds: float) -> None:
    assert load(changed(tmp_path, '"10 min"', text)).audit.time_limit == seconds


def test_load_review_section_is_read(tmp_path: Path) -> None:
    review = load(write(tmp_path)).build_policy().review
    assert review == Review(approvals=1, lapses_after=14 * 86400.0)
    section = '[review]\napprovals = 2\nlapses_after = "3 days"\n[limits]'
    policy = load(changed(tmp_path, "[limits]", section)).build_policy()
    assert policy.review == Review(approvals=2, lapses_after=3 * 86400.0)
    band = load(changed(tmp_path, "value = 0.1,", "value = 0.1, review = 0.05,"))
    assert band.build_policy().limits["known_pairs.breach_rate"].review == 0.05


@pytest.mark.parametrize(
    ("name", "old", "new", "side"),
    [
        ("known_pairs.breach_rate", "value = 0.1,", "value = 0.1, review = 0.2,", "below"),
        ("known_pairs.breach_rate", "value = 0.1,", "value = 0.1, review = 0.1,", "below"),
        ("knn_accuracy", "value = 0.75,", "value = 0.75, review = 0.7,", "above"),
        ("amplification.record", "value = 1100,", "value = 1100, review = 2000,", "below"),
    ],
)
def test_check_limit_review_on_wrong_side_raises(
    tmp_path: Path, name: str, old: str, new: str, side: str
) -> None:
    limit = load(changed(tmp_path, old, new)).build_policy().limits[name]
    with pytest.raises(BadInput, match=f"is not {side} its value"):
        check_limit(name, limit)


def test_digest_only_requested_release_matters(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    digest = load(write(tmp_path)).digest
    assert load(write(tmp_path / "other")).digest == digest
    assert load(changed(tmp_path, "0 3 * * 1", "0 4 * * 1")).digest == digest
    assert load(write(tmp_path, GOOD + "# a comment\n")).digest == digest
    reordered = GOOD.replace(RADIUS + "\n", "").replace("notes = {", RADIUS + "\nnotes = {")
    others = {
        load(write(tmp_path, reordered)).digest,
        load(changed(tmp_path, "b = 0.3", "b = 0.4")).digest,
        load(changed(tmp_path, "high = 40", "high = 41")).digest,
    }
    assert len(others | {digest}) == 4


def test_release_file_json_round_trip_is_equal(tmp_path: Path) -> None:
    file = load(write(tmp_path))
    again = ReleaseFile.model_validate_json(file.model_dump_json())
    assert again == file
    assert again.digest == file.digest
    assert again.home() == file.home()


def test_models_every_field_has_description() -> None:
    models: list[type[BaseModel]] = [*MODELS.values(), SanitizerSpec]
    for model in models:
        for name, field in model.model_fields.items():
            assert field.description, f"{model.__name__}.{name}"
    assert ReleaseFile.model_json_schema()["additionalProperties"] is False


@pytest.mark.parametrize("name", ["wdbc_rotation", "wdbc_pca_laplace"])
def test_load_example_is_valid(name: str) -> None:
    file = load(EXAMPLES / f"{name}.toml")
    numeric = [column for column in file.build_columns() if column.type == "numeric"]
    assert len(numeric) == 30
    assert file.build_source().path == str(EXAMPLES / "wdbc.csv")
    assert {name: limit.value for name, limit in file.limits.items()} == {
        "amplification.record": 1100,
        "record_linkage.rate": 0.05,
        "label.rate": 0.05,
        "known_pairs.breach_rate": 0.10,
        "membership.true_positive_rate": 0.15,
        "best_accuracy": 0.75,
    }


def test_demo_examples_differ_only_in_method() -> None:
    one, other = (load(EXAMPLES / f"wdbc_{name}.toml") for name in ("rotation", "pca_laplace"))
    for part in ("dataset", "source", "columns", "defaults", "attacker", "limits", "sinks"):
        assert getattr(one, part) == getattr(other, part)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("owner =", "ownr =", "Unknown key 'ownr' in [dataset]. Did you mean 'owner'?"),
        ("[defaults]", "[defalts]", "Unknown key 'defalts' in the release file. Did you mean"),
        ('kind = "csv"', 'kind = "xls"', f"The 'kind' key of [source] must be {KINDS}. Got 'xls'."),
        (
            'kind = "csv"',
            'kind = "csv"\nqote = "x"',
            "Unknown key 'qote' in [source]. Did you mean",
        ),
        ('kind = "csv"', 'kind = "csv"\nquote = "xy"', "'quote' key of [source] must be one"),
        ('kind = "csv"', 'kind = "csv"\nquote = 7', "'quote' key of [source] must be one"),
        ('path = "data/wdbc.csv"', "", "The 'path' key of [source] is missing. Add 'path'."),
        ('kind = "csv"', 'kind = "duckdb"', "needs a table"),
        ('kind = "csv"', 'kind = "parquet"\nquote = "x"', "'quote' key of [source] is for csv"),
        ('name = "wdbc"', 'name = "WDBC"', "The 'name' key of [dataset] must match pattern"),
        ('name = "wdbc"', 'name = "../../x"', "The 'name' key of [dataset] must match pattern"),
        (
            'name = "wdbc"',
            "name = 'x\"; drop table meta.run; --'",
            "of [dataset] must match pattern",
        ),
        ("format = 1", "format = 2", "The 'format' key of the release file must be 1. Got 2."),
        ("format = 1", "format = 1\nbase = 'x'", "Unknown key 'base'"),
        ('record_id = "patient_id"', 'record_id = "patent_id"', "Did you mean 'patient_id'?"),
        ("known_records = 40", "known_records = -1", "greater than or equal to 0. Got -1."),
        ("known_records = 40", 'known_records = "40"', "must be a valid integer. Got '40'."),
        ("b = 0.3", "b = inf", "The 'b' key of [sanitizer] must be a finite number"),
        ("b = 0.3", "b = nan", "The 'b' key of [sanitizer] must be a finite number"),
        ("b = 0.3", "b = 2020-01-01", "The 'b' key of [sanitizer] must be a finite number"),
        ('"10 min"', '"ten minutes"', 'must be a time such as "10 min"'),
        ("[audit]", "[review]\napprovals = 0\n[audit]", "greater than or equal to 1. Got 0."),
        ("[audit]", '[review]\nlapses_after = "0 days"\n[audit]', "must be greater than 0"),
        ('["known_pairs", "record_linkage"]', "[]", "must have at least 1 item"),
        ('["known_pairs", "record_linkage"]', '["a", "a"]', "requires 'a' twice"),
        ("amplification.record", "amplification.recrod", "Did you mean 'amplification.record'?"),
        ("knn_accuracy", "KNN accuracy", "Unknown limit 'KNN accuracy'."),
        ("absolute = true", 'waive = ["x"]', "only limits on gamma have"),
        ("value = 0.1,", "", "The 'value' key of limit 'known_pairs.breach_rate' is missing."),
        ("value = 0.1,", "value = inf,", "The 'value' key of limit 'known_pairs.breach_rate' must"),
        ("Europe/Berlin", "Europe/Berlim", "Did you mean 'Europe/Berlin'?"),
        ("0 3 * * 1", "monday", "The 'cron' key of [schedule] must match"),
        ("[audit]", "[[audit]]", "The 'audit' key of the release file must be"),
    ],
)
def test_load_bad_key_or_value_raises(tmp_path: Path, old: str, new: str, words: str) -> None:
    assert words in str(refused(changed(tmp_path, old, new)))


@pytest.mark.parametrize(
    ("old", "new", "column", "words"),
    [
        ('{ role = "exclude" }', '{ type = "numeric" }', "notes", "has no role"),
        ('{ role = "exclude" }', '{ rol = "exclude" }', "notes", "Did you mean 'role'?"),
        ('{ role = "exclude" }', '{ role = "feature" }', "notes", "without a type"),
        (RADIUS, RADIUS.replace(", high = 40", ""), "radius", 'low = "from_data" and high ='),
        (RADIUS, RADIUS.replace("low = 0", "low = 40"), "radius", "low = 40 and high = 40"),
        (RADIUS, RADIUS.replace("40", "nan"), "radius", 'must be a number or "from_data"'),
        (RADIUS, RADIUS.replace("40", '"many"'), "radius", "Got 'many'."),
        (RADIUS, RADIUS.replace("low = 0", "low = -1e308").replace("40", "1e308"), "radius", "far"),
        (RADIUS, RADIUS.replace("high", 'categories = ["a"], high'), "radius", "Remove"),
        (DIAGNOSIS, " }", "diagnosis", "lists no categories"),
        (DIAGNOSIS, ', categories = ["benign", "benign"] }', "diagnosis", "'benign' twice"),
        (DIAGNOSIS, ', categories = ["benign"] }', "diagnosis", "one category"),
        (DIAGNOSIS, ', missing = "median"' + DIAGNOSIS, "diagnosis", "has no median"),
        (DIAGNOSIS, ', missing = "keep"' + DIAGNOSIS, "diagnosis", "label and would keep empty"),
        (RADIUS, RADIUS.replace("low", 'missing = "keep", low'), "radius", "would keep empty"),
        ('categories = ["i", "ii"]', "low = 0", "stage", "Remove them"),
        ('["i", "ii"]', '["i", "ii"], outside = "clamp"', "stage", 'Use outside = "drop_row"'),
        (RADIUS, RADIUS.replace("low", 'outside = "drop_row", low'), "radius", "would drop rows"),
        (RADIUS, RADIUS.replace("low", 'outside = "other", low'), "radius", "for other values"),
        (DIAGNOSIS, ', outside = "other"' + DIAGNOSIS, "diagnosis", "would have other classes"),
        ('categories = ["i", "ii"]', "categories = [1, 2]", "stage", "must be a valid string"),
        ('{ role = "exclude" }', '{ role = "label", type = "numeric" }', "notes", "categorical"),
        ("notes = { role", "__ppdm_row = { role", "__ppdm_row", "reserved prefix"),
        ("notes = { role", "Radius = { role", None, "differ only in case"),
        ('role = "identifier"', 'role = "exclude"', "patient_id", "must be an identifier"),
        ('{ role = "exclude" }', '{ role = "label", categories = ["a", "b"] }', "notes", "second"),
    ],
)
def test_load_bad_column_raises(
    tmp_path: Path, old: str, new: str, column: str | None, words: str
) -> None:
    problem = refused(changed(tmp_path, old, new))
    assert words in str(problem)
    assert problem.column == column or column is None


def test_load_no_feature_raises(tmp_path: Path) -> None:
    lines = [line for line in GOOD.splitlines() if not line.startswith(("radius", "area", "stage"))]
    assert "No column is a feature" in refused(write(tmp_path, "\n".join(lines))).message


def test_load_missing_section_raises(tmp_path: Path) -> None:
    text = GOOD.replace('[sanitizer]\nmethod = "pca_laplace"', "[other]\nx = 1")
    assert "[other]" not in GOOD
    assert "Unknown key 'other'" in refused(write(tmp_path, text)).message


def test_load_unreadable_file_raises(tmp_path: Path) -> None:
    assert "does not exist" in refused(tmp_path / "none.toml").message
    assert "cannot be read" in refused(tmp_path).message
    latin = refused(write(tmp_path, GOOD.replace("registry", "régistre").encode("latin-1")))
    assert "not UTF-8: see line 5" in latin.message
    broken = refused(write(tmp_path, GOOD.replace("b = 0.3", "b = SECRET")))
    assert "syntax error in line 28" in broken.message
    assert "SECRET" not in str(broken)
    assert "at its end" in refused(write(tmp_path, GOOD + 'x = "')).message


def test_load_byte_order_mark_is_accepted(tmp_path: Path) -> None:
    assert load(write(tmp_path, b"\xef\xbb\xbf" + GOOD.encode())).dataset.name == "wdbc"


NAMES = KnownNames(
    methods={"pca_laplace", "random_rotation", "pipeline"},
    attacks={"known_pairs", "record_linkage", "shrinkage"},
    metrics={"breach_rate", "knn_accuracy"},
    composites={"pipeline"},
)


def test_check_names_known_names_pass(tmp_path: Path) -> None:
    check_names(load(write(tmp_path)), NAMES)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            '"pca_laplace"',
            '"pca_laplas"',
            "Unknown method 'pca_laplas'. Did you mean 'pca_laplace'",
        ),
        ('"record_linkage"]', '"linkage"]', "Unknown attack 'linkage'. Did you mean"),
        ('["random_rotation"]', '["rotation"]', "Unknown method 'rotation'."),
        ('["random_rotation"]', '["pipeline"]', "Name the method without a bound that the"),
        ("knn_accuracy", "knn_acuracy", "Unknown metric 'knn_acuracy'."),
        ("pairs.breach_rate", "pears.breach_rate", "Unknown attack 'known_pears'."),
        ("pairs.breach_rate", "pairs.rate", "Unknown metric 'rate'. Did you mean 'breach_rate'?"),
        ('["known_pairs", ', "[", "Add 'known_pairs' to 'required' in [audit]."),
    ],
)
def test_check_names_unknown_name_raises(tmp_path: Path, old: str, new: str, words: str) -> None:
    file = load(changed(tmp_path, old, new))
    with pytest.raises(BadInput) as caught:
        check_names(file, NAMES)
    assert words in str(caught.value)


def test_release_file_module_imports_nothing_slow() -> None:
    heavy = "{'prefect', 'pandas', 'numpy', 'duckdb', 'pyarrow'}"
    code = f"import sys, flows.config.release_file; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[3],
    )
    assert done.stdout.strip() == "[]"


def test_check_policy_attack_without_planted_leak_rejected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from ppdm_core.attacks import ATTACKS
    from ppdm_core.model.policy import Policy
    from ppdm_core.settings.policy_text import check_policy

    monkeypatch.setattr(type(ATTACKS["known_pairs"]), "must_notice", {})
    with pytest.raises(BadInput, match="declares no planted leak"):
        check_policy(Policy(required=("known_pairs",), limits={}))
