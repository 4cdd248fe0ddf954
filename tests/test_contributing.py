"""The recipes of CONTRIBUTING.md, followed literally in a copy of the tree."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).resolve().parents[1]
TITLE = re.compile(r"^## (Add an? \w+ in one file)$", re.MULTILINE)
BLOCK = re.compile(r"^`([\w/.]+)`[^\n]*:\n\n```(python|diff)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"^Then:\n\n```\n(.*?)\n```$", re.DOTALL | re.MULTILINE)
CHECK_SECONDS = 3600


@dataclass(frozen=True)
class Recipe:
    key: str
    file: tuple[str, str]  # path and content
    lines: tuple[tuple[str, str], ...]  # path and diff
    command: str


def read_recipe(section: str) -> Recipe:
    blocks = BLOCK.findall(section)
    files = [(path, text) for path, kind, text in blocks if kind == "python"]
    lines = tuple((path, text) for path, kind, text in blocks if kind == "diff")
    (file,), (command,) = files, COMMAND.findall(section)
    return Recipe(Path(file[0]).stem, file, lines, command)


def read_recipes() -> dict[str, Recipe]:
    _, *found = TITLE.split((ROOT / "CONTRIBUTING.md").read_text())
    sections = [text.split("\n## ")[0] for text in found[1::2]]
    return {recipe.key: recipe for recipe in map(read_recipe, sections)}


RECIPES = read_recipes()


def read_added_lines(diff: str) -> list[str]:
    return [line[1:] for line in diff.splitlines() if line.startswith("+")]


def insert_lines(text: str, diff: str) -> str:
    """Return the text with each marked line inserted below the line that is shown above it."""
    lines, place = text.splitlines(), 0
    for line in diff.splitlines():
        if line.startswith("+"):
            lines.insert(place, line[1:])
        else:
            assert lines.count(line[1:]) == 1, f"not one line of the file: {line[1:]}"
            place = lines.index(line[1:]) + 1
    return "\n".join(lines) + "\n"


def follow(recipe: Recipe, root: Path) -> None:
    path, content = recipe.file
    if (root / path).exists() and (root / path).read_text() == content:
        return  # this tree already follows the recipe
    assert not (root / path).exists(), f"{path} exists already: choose another example"
    (root / path).write_text(content)
    for path, diff in recipe.lines:
        (root / path).write_text(insert_lines((root / path).read_text(), diff))


def copy_tree(root: Path) -> None:
    """Copy everything that git would commit."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, root / name)
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)


def make_environment(root: Path) -> None:
    """Make a .venv with the packages of this one, in which the copy is the installed project."""
    target = root / ".venv"
    venv.create(target, symlinks=True)
    (packages,) = target.glob("lib/python*/site-packages")
    installed = [path for path in sys.path if path.endswith("site-packages")]
    (packages / "copy.pth").write_text("\n".join([str(root), *installed]) + "\n")
    for script in Path(sys.executable).parent.iterdir():
        made = target / "bin" / script.name
        if made.exists() or script.is_dir():
            continue
        shebang = f"#!{sys.executable}".encode()
        content = script.read_bytes()
        made.write_bytes(content.replace(shebang, f"#!{target}/bin/python".encode(), 1))
        made.chmod(0o755)
    for stamp in ("uv", "run", "dev"):  # of the Makefile: nothing is left to install
        (target / stamp).touch()


def run(root: Path, *arguments: str, timeout: float = 300) -> subprocess.CompletedProcess[str]:
    """Run a command in the copy, without the paths and settings of this test run."""
    dropped = ("PYTHONPATH", "PPDM_TESTS_", "PYTEST_", "COVERAGE")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(dropped)}
    data = Path(os.environ.get("PPDM_DATA", ROOT.parent / "shared" / "data"))
    return subprocess.run(
        arguments,
        cwd=root,
        env={**environment, "PPDM_DATA": str(data)},
        capture_output=True,
        text=True,
        timeout=timeout,
    )


@contextmanager
def make_tree() -> Iterator[Path]:
    """Make a copy that other users can read, unlike ``tmp_path``: some tests act as one."""
    with tempfile.TemporaryDirectory(prefix="ppdm-recipes-") as name:
        root = Path(name)
        root.chmod(0o755)
        copy_tree(root)
        make_environment(root)
        yield root


@pytest.fixture
def tree() -> Iterator[Path]:
    with make_tree() as root:
        yield root


@pytest.fixture(scope="module")
def followed() -> Iterator[Path]:
    """A copy in which all recipes are followed."""
    with make_tree() as root:
        for recipe in RECIPES.values():
            follow(recipe, root)
        yield root


def test_recipes_one_for_each_kind():
    folders = {Path(recipe.file[0]).parent.name for recipe in RECIPES.values()}
    assert folders == {"sanitizers", "attacks", "metrics", "sources"}


@pytest.mark.parametrize("key", RECIPES)
def test_recipe_one_file_and_two_lines(key: str):
    recipe = RECIPES[key]
    (registry, registered), (cases, case) = recipe.lines
    assert registry == str(Path(recipe.file[0]).with_name("__init__.py"))
    assert cases == "tests/contract/cases.py"
    imported, line = read_added_lines(registered)
    assert imported.startswith("from ") and key in line
    assert len(read_added_lines(case)) == 1
    assert recipe.command == f".venv/bin/python -m pytest tests/contract -k {key}"
    followed = insert_lines((ROOT / registry).read_text(), registered)
    modules = re.findall(r"^from (ppdm_core\.\S+|warehouse\.\S+)", followed, re.MULTILINE)
    assert modules == sorted(modules), "ruff wants the imports in order"


def run_contract_tests(root: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = RECIPES["one_bit"].command.removesuffix(" -k one_bit").split()
    return run(root, *command, "-k", " or ".join(RECIPES), *options)


@pytest.mark.slow
def test_recipes_followed_contract_tests_pass(followed: Path):
    done = run_contract_tests(followed, "-v")
    assert done.returncode == 0, done.stdout
    for key in RECIPES:
        assert len(re.findall(rf"\[.*{key}.*\] PASSED", done.stdout)) >= 5, key


@pytest.mark.slow
@pytest.mark.parametrize("key", ["one_bit", "length_linkage", "spread_error"])
def test_recipes_followed_methods_describes_it(followed: Path, key: str):
    shown = run(followed, ".venv/bin/ppdm", "methods", key)
    assert shown.returncode == 0 and shown.stdout.startswith(f"{key}: "), shown.stderr


@pytest.mark.slow
def test_recipes_followed_make_check_passes(followed: Path):
    done = run(followed, "make", "check", timeout=CHECK_SECONDS)
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-2_000:]
    assert "uv pip install" not in done.stdout


def remove_case(recipe: Recipe) -> Recipe:
    return replace(recipe, lines=recipe.lines[:1])


def plant_bug(old: str, new: str) -> Callable[[Recipe], Recipe]:
    def plant(recipe: Recipe) -> Recipe:
        path, content = recipe.file
        assert content.count(old) == 1, f"not once in {path}: {old}"
        return replace(recipe, file=(path, content.replace(old, new)))

    return plant


Bug = tuple[str, Callable[[Recipe], Recipe], str]  # key, how to plant it, words of the failure
BUGS: list[Bug] = [
    ("one_bit", remove_case, "one_bit has no line in cases.py"),
    ("one_bit", plant_bug("np.where(is_high,", "np.where(place > 0.5,"), "20 keys give the same"),
    ("one_bit", plant_bug("ln_record=len(schema.numeric) *", "ln_record=0.5 *"), "than the whole"),
    ("one_bit", plant_bug("**Guarantee**", "Guarantee of sorts"), "does not say **Guarantee**"),
    ("length_linkage", remove_case, "length_linkage has no line in cases.py"),
    ("length_linkage", plant_bug("order[above - is_below]", "order[0 * above]"), "it recovers"),
    ("length_linkage", plant_bug("        check_needs(self, view)\n", ""), "AssertionError"),
    ("spread_error", remove_case, "spread_error has no line in cases.py"),
    ("spread_error", plant_bug("np.abs(after / before - 1)", "after / before"), "AssertionError"),
    ("json_lines", remove_case, "json_lines has no line in cases.py"),
    (
        "json_lines",
        plant_bug("        check_header(rows.column_names, source)\n", ""),
        "DID NOT RAISE",
    ),
    ("json_lines", plant_bug("from {ROWS}", "from {ROWS} order by 1 desc"), "AssertionError"),
]


def group_bugs() -> list[list[Bug]]:
    """Return groups of at most one bug of each recipe: one run of the tests finds them all."""
    by_key = ([bug for bug in BUGS if bug[0] == key] for key in RECIPES)
    return [[bug for bug in group if bug is not None] for group in zip_longest(*by_key)]


def read_failures(path: Path) -> list[tuple[str, str]]:
    """Return the name and the text of every failed test, from a file in the format of JUnit."""
    cases = ElementTree.parse(path).getroot().iter("testcase")
    found = ((case.get("name", ""), case.find("failure")) for case in cases)
    return [
        (name, f"{failure.get('message')} {failure.text}")
        for name, failure in found
        if failure is not None
    ]


@pytest.mark.slow
@pytest.mark.parametrize("bugs", group_bugs(), ids=["1", "2", "3", "4"])
def test_recipes_with_bugs_contract_tests_fail(bugs: list[Bug], tree: Path):
    for key, plant, _ in bugs:
        follow(plant(RECIPES[key]), tree)
    done = run_contract_tests(tree, "--junitxml=failures.xml")
    assert done.returncode == 1, done.stdout
    failures = read_failures(tree / "failures.xml")
    for key, _, words in bugs:
        assert any(key in name and words in text for name, text in failures), (key, words)


def test_insert_lines_missing_anchor_raises():
    with pytest.raises(AssertionError, match="not one line"):
        insert_lines("a\nb\n", " c\n+d\n")
    assert insert_lines("a\nb\n", " a\n+c\n b\n+d") == "a\nc\nb\nd\n"
