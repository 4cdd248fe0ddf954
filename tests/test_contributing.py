"""The recipes of CONTRIBUTING.md, followed to the letter in a copy of the tree."""

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
NEEDED = ("ppdm", "flows", "tasks", "warehouse", "ppdm_core", "tests/contract", "tests/support")
NEEDED_FILES = ("pyproject.toml", "tests/conftest.py")
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


def added(diff: str) -> list[str]:
    return [line[1:] for line in diff.splitlines() if line.startswith("+")]


def inserted(text: str, diff: str) -> str:
    """The text with each marked line below the line that is shown above it."""
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
    assert not (root / path).exists(), f"{path} is there already: choose another example"
    (root / path).write_text(content)
    for path, diff in recipe.lines:
        (root / path).write_text(inserted((root / path).read_text(), diff))


def run(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Python in the copy; what the developer's shell says of paths must not lead back here."""
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
    for folder in NEEDED:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / folder, root / folder, ignore=ignored)
    for file in NEEDED_FILES:
        shutil.copy(ROOT / file, root / file)
    yield root
    shutil.rmtree(root)


@pytest.mark.parametrize("key", RECIPES)
def test_a_recipe_is_one_file_and_two_lines(key: str):
    recipe = RECIPES[key]
    (registry, registered), (cases, case) = recipe.lines
    assert registry == str(Path(recipe.file[0]).with_name("__init__.py"))
    assert cases == "tests/contract/cases.py"
    imported, line = added(registered)
    assert imported.startswith("from ") and key in line
    assert len(added(case)) == 1


@pytest.mark.parametrize("key", RECIPES)
def test_a_recipe_works(key: str, tree: Path):
    recipe = RECIPES[key]
    follow(recipe, tree)
    done = run_command(recipe, tree)
    assert done.returncode == 0, done.stdout
    assert re.search(r"\d\d? passed", done.stdout) and "skipped" not in done.stdout
    # The order of imports is left to ruff, because it depends on what else is registered.
    linted = run(tree, "-m", "ruff", "check", "--no-cache", "--ignore=I001", *changed(recipe))
    assert linted.returncode == 0, linted.stdout
    formatted = run(tree, "-m", "ruff", "format", "--no-cache", "--check", *changed(recipe))
    assert formatted.returncode == 0, formatted.stdout
    shown = run(tree, "-m", "ppdm.cli.app", "methods", key)
    assert shown.returncode == 0 and shown.stdout.startswith(f"{key}: "), shown.stderr


def changed(recipe: Recipe) -> list[str]:
    return [recipe.file[0], *(path for path, _ in recipe.lines)]


def without_case(recipe: Recipe) -> Recipe:
    return replace(recipe, lines=recipe.lines[:1])


def with_bug(old: str, new: str) -> Callable[[Recipe], Recipe]:
    def plant(recipe: Recipe) -> Recipe:
        path, content = recipe.file
        assert content.count(old) == 1, f"not once in {path}: {old}"
        return replace(recipe, file=(path, content.replace(old, new)))

    return plant


SPOILED = [
    ("one_bit", without_case, "one_bit has no line in cases.py"),
    ("one_bit", with_bug("np.where(is_high,", "np.where(place > 0.5,"), "20 keys give the same"),
    ("one_bit", with_bug("ln_record=len(schema.numeric) *", "ln_record=0.5 *"), "than the whole"),
    ("one_bit", with_bug("**Guarantee**", "Guarantee of sorts"), "does not say **Guarantee**"),
    ("length_linkage", without_case, "length_linkage has no line in cases.py"),
    ("length_linkage", with_bug("order[above - is_below]", "order[0 * above]"), "it recovers"),
    ("length_linkage", with_bug("        check_needs(self, view)\n", ""), "AssertionError"),
]
QUICK = SPOILED[0]  # the others wait for the slow run


@pytest.mark.parametrize(
    ("key", "spoil", "words"),
    [pytest.param(*one, marks=() if one is QUICK else pytest.mark.slow) for one in SPOILED],
    ids=[f"{key}-{words}" for key, _, words in SPOILED],
)
def test_a_spoiled_recipe_fails(
    key: str, spoil: Callable[[Recipe], Recipe], words: str, tree: Path
):
    recipe = spoil(RECIPES[key])
    follow(recipe, tree)
    done = run_command(recipe, tree)
    assert done.returncode == 1, done.stdout
    assert words in done.stdout


@pytest.mark.slow
def test_the_recipes_pass_the_type_checker(tree: Path):
    for recipe in RECIPES.values():
        follow(recipe, tree)
    done = run(tree, "-m", "mypy", *(recipe.file[0] for recipe in RECIPES.values()))
    assert done.returncode == 0, done.stdout


def test_a_line_that_moved_is_noticed():
    with pytest.raises(AssertionError, match="not one line"):
        inserted("a\nb\n", " c\n+d\n")
    assert inserted("a\nb\n", " a\n+c\n b\n+d") == "a\nc\nb\nd\n"
