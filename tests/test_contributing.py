"""The recipes of CONTRIBUTING.md, followed literally in a copy of the tree."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
COPIED_FOLDERS = (
    "ppdm",
    "flows",
    "tasks",
    "warehouse",
    "ppdm_core",
    "tests/contract",
    "tests/support",
)
COPIED_FILES = ("pyproject.toml", "tests/conftest.py")
BLOCK = re.compile(r"^`([\w/.]+)`[^\n]*:\n\n```(python|diff)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"^Then:\n\n```\n(.*?)\n```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Recipe:
    key: str
    file: tuple[str, str]  # path and content
    lines: tuple[tuple[str, str], ...]  # path and diff
    command: str


def read_recipe(title: str) -> Recipe:
    page = (ROOT / "CONTRIBUTING.md").read_text()
    section = page.split(f"## {title}\n")[1].split("\n## ")[0]
    blocks = BLOCK.findall(section)
    files = [(path, text) for path, kind, text in blocks if kind == "python"]
    lines = tuple((path, text) for path, kind, text in blocks if kind == "diff")
    (file,), (command,) = files, COMMAND.findall(section)
    return Recipe(Path(file[0]).stem, file, lines, command)


RECIPES = {
    recipe.key: recipe
    for recipe in map(read_recipe, ("Add a sanitizer in one file", "Add an attack in one file"))
}


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
    assert not (root / path).exists(), f"{path} exists already: choose another example"
    (root / path).write_text(content)
    for path, diff in recipe.lines:
        (root / path).write_text(insert_lines((root / path).read_text(), diff))


def run(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python in the copy, without the PYTHONPATH of the shell, which may name this tree."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )


def run_command(recipe: Recipe, root: Path) -> subprocess.CompletedProcess[str]:
    python, *arguments = shlex.split(recipe.command)
    assert python == ".venv/bin/python"
    return run(root, *arguments)


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[Path]:
    root = tmp_path / "tree"
    for folder in COPIED_FOLDERS:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / folder, root / folder, ignore=ignored)
    for file in COPIED_FILES:
        shutil.copy(ROOT / file, root / file)
    yield root
    shutil.rmtree(root)


@pytest.mark.parametrize("key", RECIPES)
def test_recipe_one_file_and_two_lines(key: str):
    recipe = RECIPES[key]
    (registry, registered), (cases, case) = recipe.lines
    assert registry == str(Path(recipe.file[0]).with_name("__init__.py"))
    assert cases == "tests/contract/cases.py"
    imported, line = read_added_lines(registered)
    assert imported.startswith("from ") and key in line
    assert len(read_added_lines(case)) == 1


@pytest.mark.parametrize("key", RECIPES)
def test_recipe_followed_contract_tests_pass(key: str, tree: Path):
    recipe = RECIPES[key]
    follow(recipe, tree)
    done = run_command(recipe, tree)
    assert done.returncode == 0, done.stdout
    assert re.search(r"\d\d? passed", done.stdout) and "skipped" not in done.stdout
    # The order of imports is left to ruff, because it depends on what else is registered.
    linted = run(
        tree, "-m", "ruff", "check", "--no-cache", "--ignore=I001", *list_changed_files(recipe)
    )
    assert linted.returncode == 0, linted.stdout
    formatted = run(
        tree, "-m", "ruff", "format", "--no-cache", "--check", *list_changed_files(recipe)
    )
    assert formatted.returncode == 0, formatted.stdout
    shown = run(tree, "-m", "ppdm.cli.app", "methods", key)
    assert shown.returncode == 0 and shown.stdout.startswith(f"{key}: "), shown.stderr


def list_changed_files(recipe: Recipe) -> list[str]:
    return [recipe.file[0], *(path for path, _ in recipe.lines)]


def remove_case(recipe: Recipe) -> Recipe:
    return replace(recipe, lines=recipe.lines[:1])


def plant_bug(old: str, new: str) -> Callable[[Recipe], Recipe]:
    def plant(recipe: Recipe) -> Recipe:
        path, content = recipe.file
        assert content.count(old) == 1, f"not once in {path}: {old}"
        return replace(recipe, file=(path, content.replace(old, new)))

    return plant


BUGS = [
    ("one_bit", remove_case, "one_bit has no line in cases.py"),
    ("one_bit", plant_bug("np.where(is_high,", "np.where(place > 0.5,"), "20 keys give the same"),
    ("one_bit", plant_bug("ln_record=len(schema.numeric) *", "ln_record=0.5 *"), "than the whole"),
    ("one_bit", plant_bug("**Guarantee**", "Guarantee of sorts"), "does not say **Guarantee**"),
    ("length_linkage", remove_case, "length_linkage has no line in cases.py"),
    ("length_linkage", plant_bug("order[above - is_below]", "order[0 * above]"), "it recovers"),
    ("length_linkage", plant_bug("        check_needs(self, view)\n", ""), "AssertionError"),
]
QUICK_BUG = BUGS[0]  # the others are slow tests


@pytest.mark.parametrize(
    ("key", "plant", "words"),
    [pytest.param(*one, marks=() if one is QUICK_BUG else pytest.mark.slow) for one in BUGS],
    ids=[f"{key}-{words}" for key, _, words in BUGS],
)
def test_recipe_with_bug_contract_tests_fail(
    key: str, plant: Callable[[Recipe], Recipe], words: str, tree: Path
):
    recipe = plant(RECIPES[key])
    follow(recipe, tree)
    done = run_command(recipe, tree)
    assert done.returncode == 1, done.stdout
    assert words in done.stdout


@pytest.mark.slow
def test_recipes_type_checker_passes(tree: Path):
    for recipe in RECIPES.values():
        follow(recipe, tree)
    done = run(tree, "-m", "mypy", *(recipe.file[0] for recipe in RECIPES.values()))
    assert done.returncode == 0, done.stdout


def test_insert_lines_missing_anchor_raises():
    with pytest.raises(AssertionError, match="not one line"):
        insert_lines("a\nb\n", " c\n+d\n")
    assert insert_lines("a\nb\n", " a\n+c\n b\n+d") == "a\nc\nb\nd\n"
