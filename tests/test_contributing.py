"""The recipes of CONTRIBUTING.md, followed literally in a copy of the tree."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

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


@pytest.fixture
def tree() -> Iterator[Path]:
    """A copy that other users can read, unlike ``tmp_path``: some tests act as one."""
    with tempfile.TemporaryDirectory(prefix="ppdm-recipes-") as name:
        root = Path(name)
        root.chmod(0o755)
        copy_tree(root)
        make_environment(root)
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


@pytest.mark.slow
def test_recipes_followed_contract_tests_pass(tree: Path):
    for recipe in RECIPES.values():
        follow(recipe, tree)
    keys = " or ".join(RECIPES)
    done = run(tree, ".venv/bin/python", "-m", "pytest", "-v", "tests/contract", "-k", keys)
    assert done.returncode == 0, done.stdout
    for key in RECIPES:
        assert len(re.findall(rf"\[.*{key}.*\] PASSED", done.stdout)) >= 5, key


@pytest.mark.slow
def test_recipes_followed_make_check_passes(tree: Path):
    for recipe in RECIPES.values():
        follow(recipe, tree)
    done = run(tree, "make", "check", timeout=CHECK_SECONDS)
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-2_000:]
    assert "uv pip install" not in done.stdout
    for key in ("one_bit", "length_linkage", "spread_error"):
        shown = run(tree, ".venv/bin/ppdm", "methods", key)
        assert shown.returncode == 0 and shown.stdout.startswith(f"{key}: "), shown.stderr


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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("key", "plant", "words"), BUGS, ids=[f"{key}-{words}" for key, _, words in BUGS]
)
def test_recipe_with_bug_contract_tests_fail(
    key: str, plant: Callable[[Recipe], Recipe], words: str, tree: Path
):
    recipe = plant(RECIPES[key])
    follow(recipe, tree)
    done = run(tree, *shlex.split(recipe.command))
    assert done.returncode == 1, done.stdout
    assert words in done.stdout


def test_insert_lines_missing_anchor_raises():
    with pytest.raises(AssertionError, match="not one line"):
        insert_lines("a\nb\n", " c\n+d\n")
    assert insert_lines("a\nb\n", " a\n+c\n b\n+d") == "a\nc\nb\nd\n"
