"""Rules about the source itself, each with a planted violation that the rule must find."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest

from ppdm_core.attacks import ATTACKS
from ppdm_core.metrics import METRICS
from ppdm_core.sanitizers import SANITIZERS

ROOT = Path(__file__).resolve().parents[1]
LAYERS = ("ppdm", "flows", "tasks", "warehouse", "ppdm_core")  # each may import those to its right
WAREHOUSE_MAY_IMPORT = ("ppdm_core.model", "ppdm_core.numerics")
ONLY_IN = {
    "mlflow": "tasks/notify/mlflow_log.py",
    "great_expectations": "tasks/ingest/expectations.py",
    "prefect.artifacts": "tasks/notify/prefect_artifacts.py",
}
# Messages to other processes, never a file.
MESSAGES = ("tasks/audit/attack_worker.py", "warehouse/engines/_messages.py")
WRITES_MESSAGES = ("_Pickler", "_IdentityPickler")
# Whoever reads a file of these executes what is in it.
EXECUTING = {"shelve", "marshal", "dill", "cloudpickle", "joblib"}
PICKLED_FILES = ("pickle.load", "pickle.dump", "Pickler", "Unpickler", "read_pickle", "to_pickle")
NOT_IN_CORE = {"pandas", "prefect", "mlflow", "great_expectations", "duckdb", "pyarrow", "typer"}
BLIND = {"Exception", "BaseException"}
MAY_CATCH_ALL = "ppdm_core/audit/runner.py"
# Constructors of generators that a caller hands on; all other names are the hidden global one.
GENERATORS = {"Generator", "PCG64", "SeedSequence", "default_rng", "BitGenerator"}
IMITATED_GENERATORS = (  # draw what others would draw
    "ppdm_core/numerics/seeded_streams.py",
    "ppdm_core/numerics/derived_streams.py",
)
SQL = re.compile(
    r"\bselect\b.+\bfrom\b|\binsert into\b|\bupdate [\w.\"{}]+ set\b|\bdelete from\b|"
    r"\b(create|drop) (or replace )?(temp )?(table|schema|view)\b",
    re.IGNORECASE | re.DOTALL,
)
REGISTRIES = {"sanitizers": SANITIZERS, "attacks": ATTACKS, "metrics": METRICS}
# Words that are also the name of something registered, and here mean something else.
HOMONYMS = {
    ("ppdm_core/gates/required_audits.py", "membership"),  # a kind of risk
    ("ppdm_core/gates/required_audits.py", "linkability"),  # a kind of risk
    ("ppdm_core/miners/noise_aware.py", "shrinkage"),  # a parameter
    ("ppdm_core/sanitizers/nonmetric_mds.py", "stress"),  # a published figure
    ("ppdm_core/two_tables/runner.py", "known_records"),  # a table that is given
}


@dataclass
class Module:
    path: str  # below the root, with slashes
    code: str

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(ast.parse(self.code)))

    @property
    def layer(self) -> str:
        return self.path.split("/")[0]

    @cached_property
    def imports(self) -> list[str]:
        """Every imported name in full, wherever in the file it is imported."""
        names = []
        for node in self.nodes:
            if isinstance(node, ast.Import):
                names += [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{self.path}: relative import"
                names += [f"{node.module}.{alias.name}" for alias in node.names]
        return names

    @cached_property
    def texts(self) -> list[tuple[int, str]]:
        """Line and text of every string that is not a docstring."""
        texts, skipped = [], set()
        for node in self.nodes:
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                skipped.add(node.value)
            elif isinstance(node, ast.JoinedStr):
                skipped |= {each for each in node.values if isinstance(each, ast.Constant)}
                parts = (
                    str(each.value) if isinstance(each, ast.Constant) else "{}"
                    for each in node.values
                )
                texts.append((node.lineno, "".join(parts)))
        constants = [node for node in self.nodes if isinstance(node, ast.Constant)]
        return texts + [(node.lineno, str(node.value)) for node in constants if node not in skipped]

    def has_decorator(self, name: str) -> bool:
        """Return whether a function is decorated with ``name`` or ``name(...)``."""
        functions = [node for node in self.nodes if isinstance(node, ast.FunctionDef)]
        decorators = [each for function in functions for each in function.decorator_list]
        calls = (each.func if isinstance(each, ast.Call) else each for each in decorators)
        return any(name_of(each) == name for each in calls)


def read_modules(root: Path) -> list[Module]:
    paths = sorted(path for layer in LAYERS for path in (root / layer).rglob("*.py"))
    return [Module(str(p.relative_to(root)), p.read_text()) for p in paths]


def find_violations(root: Path) -> list[str]:
    checks = (
        check_layers,
        check_places,
        check_blind_except,
        check_global_random,
        check_dynamic_import,
        check_flow_files,
        check_task_files,
        check_sql,
        check_registered_names,
        check_executing_formats,
    )
    return [line for module in read_modules(root) for check in checks for line in check(module)]


def check_layers(module: Module) -> Iterator[str]:
    below = LAYERS[LAYERS.index(module.layer) :]
    for name in module.imports:
        top = name.split(".")[0]
        if top in LAYERS and top not in below:
            yield f"{module.path}: {module.layer} imports {name}"
        if top == "tests":
            yield f"{module.path}: imports {name}"
        is_shared = f"{name}.".startswith(tuple(f"{each}." for each in WAREHOUSE_MAY_IMPORT))
        if module.layer == "warehouse" and top == "ppdm_core" and not is_shared:
            yield f"{module.path}: the warehouse imports {name}"
        if module.layer == "ppdm_core" and top in NOT_IN_CORE:
            yield f"{module.path}: the core imports {name}"


def check_places(module: Module) -> Iterator[str]:
    for name in module.imports:
        for package, place in ONLY_IN.items():
            if f"{name}.".startswith(f"{package}.") and module.path != place:
                yield f"{module.path}: only {place} may import {package}"


def check_executing_formats(module: Module) -> Iterator[str]:
    is_message = module.path in MESSAGES
    for name in module.imports:
        if name.split(".")[0] in EXECUTING and not (is_message and name == "cloudpickle"):
            yield f"{module.path}: imports {name}, whose files execute code"
        if name.split(".")[0] == "pickle" and not is_message:
            yield f"{module.path}: only messages to other processes may be pickled"
    for node in module.nodes:
        called = name_of(node.func) if isinstance(node, ast.Call) else ""
        if called.endswith(PICKLED_FILES) and not (is_message and called in WRITES_MESSAGES):
            yield f"{module.path}:{node.lineno}: reads or writes a pickled file"
        if isinstance(node, ast.keyword) and node.arg == "allow_pickle":
            yield f"{module.path}:{node.value.lineno}: reads or writes a pickled file"


def check_blind_except(module: Module) -> Iterator[str]:
    if module.path == MAY_CATCH_ALL:
        return
    for node in module.nodes:
        if isinstance(node, ast.ExceptHandler) and is_blind(node) and not raises_again(node):
            yield f"{module.path}:{node.lineno}: catches everything"
        if isinstance(node, ast.Call) and name_of(node.func).endswith("suppress"):
            blind = {name_of(argument) for argument in node.args} & BLIND
            yield from (f"{module.path}:{node.lineno}: suppresses everything" for _ in blind)


def is_blind(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(name_of(each) in BLIND for each in caught)


def raises_again(handler: ast.ExceptHandler) -> bool:
    """Return whether the error is raised again, for example after a rollback."""
    last = handler.body[-1]
    return isinstance(last, ast.Raise) and last.exc is None


def check_global_random(module: Module) -> Iterator[str]:
    if module.path in IMITATED_GENERATORS:
        return
    for node in module.nodes:
        owner, _, name = (name_of(node) if isinstance(node, ast.Attribute) else "").rpartition(".")
        if owner in ("np.random", "numpy.random") and name not in GENERATORS:
            yield f"{module.path}:{node.lineno}: uses numpy's global generator ({name})"
    for name in module.imports:
        if name.split(".")[0] == "random":
            yield f"{module.path}: uses Python's global generator"
        if name.startswith("numpy.random") and name.split(".")[-1] not in GENERATORS | {"random"}:
            yield f"{module.path}: imports {name}"


def check_dynamic_import(module: Module) -> Iterator[str]:
    """Yield imports that these rules could not read."""
    for node in module.nodes:
        if isinstance(node, ast.Call) and name_of(node.func) in (
            "importlib.import_module",
            "import_module",
            "__import__",
        ):
            yield f"{module.path}:{node.lineno}: imports by a computed name"


def check_flow_files(module: Module) -> Iterator[str]:
    parts = module.path.split("/")
    is_flow_file = parts[0] == "flows" and len(parts) == 2 and parts[1] != "__init__.py"
    if is_flow_file and not module.has_decorator("flow"):
        yield f"{module.path}: holds no @flow"


def check_task_files(module: Module) -> Iterator[str]:
    parts = module.path.split("/")
    if parts[0] == "tasks" and parts[-1] == "task.py" and not module.has_decorator("task"):
        yield f"{module.path}: holds no @task"


def check_sql(module: Module) -> Iterator[str]:
    if module.layer == "warehouse":
        return
    for line, text in module.texts:
        if SQL.search(text):
            yield f"{module.path}:{line}: holds SQL"


def check_registered_names(module: Module) -> Iterator[str]:
    """Yield names of methods, attacks and metrics outside their own file and registry."""
    path = Path(module.path)
    for folder, registry in REGISTRIES.items():
        if path.name == "__init__.py" and path.parent.name == folder:
            continue
        for line, text in module.texts:
            for name in set(re.split(r"[./]", text)) & set(registry):
                if path.stem != name and (module.path, name) not in HOMONYMS:
                    yield f"{module.path}:{line}: names {name}"


def name_of(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{name_of(node.value)}.{node.attr}"
    return ""


def test_product_current_tree_keeps_every_rule():
    assert len(read_modules(ROOT)) > 60
    assert find_violations(ROOT) == []


def test_rules_named_places_exist():
    assert {module.layer for module in read_modules(ROOT)} == set(LAYERS)
    for place in (*ONLY_IN.values(), *MESSAGES, MAY_CATCH_ALL):
        assert (ROOT / place).is_file(), f"{place} is named by a rule and does not exist"
    for path, name in HOMONYMS:
        assert name in (ROOT / path).read_text(), f"{path} no longer holds '{name}'"


def test_tasks_every_step_folder_has_a_task_file():
    folders = [path for path in (ROOT / "tasks").iterdir() if (path / "__init__.py").exists()]
    assert len(folders) >= 5
    assert [path.name for path in folders if not (path / "task.py").is_file()] == []


# A rollback swallows nothing.
ALLOWED = "try:\n    pass\nexcept BaseException:\n    x = 1\n    raise\n"
PLANTED = {
    "ppdm_core/numerics/noise.py": [
        ("import warehouse.database", "ppdm_core imports warehouse.database"),
        ("from tasks import context", "ppdm_core imports tasks.context"),
        ("import pandas as pd", "the core imports pandas"),
        ("def f():\n    import duckdb", "the core imports duckdb"),
        ("x = np.random.normal(0, 1)", "numpy's global generator (normal)"),
        ("np.random.seed(1)", "numpy's global generator (seed)"),
        ("from numpy.random import rand", "imports numpy.random.rand"),
        ("import random", "Python's global generator"),
        ("x = 'record_linkage.value'", "names record_linkage"),
    ],
    "warehouse/database.py": [
        ("from ppdm_core.audit import runner", "the warehouse imports ppdm_core.audit.runner"),
        ("from ppdm_core import sanitizers", "the warehouse imports ppdm_core.sanitizers"),
        ("if 1:\n    from tasks import context", "warehouse imports tasks.context"),
        ("try:\n    pass\nexcept Exception:\n    pass", "catches everything"),
        ("try:\n    pass\nexcept:\n    pass", "catches everything"),
        ("try:\n    pass\nexcept (OSError, BaseException):\n    x = 1", "catches everything"),
        ("with suppress(Exception):\n    pass", "suppresses everything"),
    ],
    "tasks/judge/task.py": [
        ("from flows.config import release_file", "tasks imports flows.config.release_file"),
        ("import mlflow.entities", "only tasks/notify/mlflow_log.py may import mlflow"),
        ("import great_expectations as gx", "only tasks/ingest/expectations.py may import"),
        ("from prefect.artifacts import x", "may import prefect.artifacts"),
        ("from prefect import artifacts", "may import prefect.artifacts"),
        ("__import__('ppdm.cli.app')", "imports by a computed name"),
        ("import tests.support", "imports tests.support"),
        ("x = f'select a from {x} where b'", "holds SQL"),
        ("x = 'insert into t values (1)'", "holds SQL"),
        ("x = ['additive_noise']", "names additive_noise"),
    ],
    "tasks/audit/attack_worker.py": [
        ("x = pickle.load(open('work/job'))", "reads or writes a pickled file"),
        ("pickle.dump(1, open('work/job', 'wb'))", "reads or writes a pickled file"),
        ("x = np.load('work/x.npy', allow_pickle=True)", "reads or writes a pickled file"),
    ],
    "warehouse/engines/_messages.py": [
        ("pickle.dump(1, open('work/x', 'wb'))", "reads or writes a pickled file"),
        ("x = pickle.Unpickler(open('work/x'))", "reads or writes a pickled file"),
        ("import joblib", "imports joblib, whose files execute code"),
    ],
    "tasks/audit/attack_inputs.py": [
        ("import pickle", "only messages to other processes may be pickled"),
        ("import cloudpickle", "imports cloudpickle, whose files execute code"),
        ("from joblib import dump", "imports joblib.dump, whose files execute code"),
        ("x.to_pickle('work/x')", "reads or writes a pickled file"),
    ],
    "flows/release.py": [
        ("from mlflow import MlflowClient", "may import mlflow"),
        ("import importlib\nimportlib.import_module('mlflow')", "imports by a computed name"),
        ("import ppdm.cli", "flows imports ppdm.cli"),
    ],
    "flows/helpers.py": [("x = 1", "holds no @flow")],
    "tasks/extra/task.py": [("def task():\n    pass", "holds no @task")],
    "ppdm/cli/console.py": [
        ("x = 'update meta.run set stage = 1'", "holds SQL"),
        ("x = 'knn_accuracy'", "names knn_accuracy"),
    ],
}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Violations in a copy of the tree with every forbidden line planted."""
    root = tmp_path_factory.mktemp("copy")
    for layer in LAYERS:
        shutil.copytree(ROOT / layer, root / layer, ignore=shutil.ignore_patterns("__pycache__"))
    for path, plants in PLANTED.items():
        lines = [line for line, _ in plants]
        before = (ROOT / path).read_text() if (ROOT / path).exists() else ""
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_text("\n".join([before, *lines, ALLOWED]))
    return find_violations(root)


@pytest.mark.parametrize(
    ("path", "line", "words"),
    [(path, line, words) for path, plants in PLANTED.items() for line, words in plants],
)
def test_rule_planted_line_is_found(found: list[str], path: str, line: str, words: str):
    assert any(path in one and words in one for one in found), line


def test_rules_planted_copy_finds_nothing_else(found: list[str]):
    assert len(found) == sum(len(plants) for plants in PLANTED.values())


def list_loaded(code: str, packages: set[str]) -> list[str]:
    """Run Python code in a new process, and return which packages it imported."""
    script = f"import sys\n{code}\nprint(sorted({packages!r} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    loaded: list[str] = ast.literal_eval(done.stdout.strip().splitlines()[-1])
    return loaded


def test_cli_imported_without_heavy_packages():
    heavy = {"prefect", "mlflow", "great_expectations", "sklearn", "pandas", "scipy", "duckdb"}
    assert list_loaded("import ppdm.cli.app", heavy | {"pyarrow"}) == []


def test_core_imported_with_numeric_packages_only():
    code = "import ppdm_core.audit.auditor, ppdm_core.gates, ppdm_core.sanitizers"
    assert list_loaded(code, NOT_IN_CORE) == []


def test_list_loaded_planted_imports_are_found():
    code = "def open_later():\n    import duckdb\nimport ppdm_core.sanitizers\nopen_later()"
    assert list_loaded(code, {"numpy", "duckdb", "prefect"}) == ["duckdb", "numpy"]


def test_attack_worker_ready_without_prefect_and_mlflow():
    code = "from tasks.audit import attack_worker\nattack_worker.preload()"
    assert list_loaded(code, {"prefect", "mlflow", "great_expectations"}) == []


def list_commands(folder: Path) -> list[list[str]]:
    """Return commands whose arguments let them work to their end."""
    from tests.support.policies import QUICK
    from tests.support.small_release import Small, write_csv
    from tests.support.stewards import Steward, numbers

    small = Small(folder, "small", {}).write()
    (folder / "quick.toml").write_text(QUICK)
    rows = [{name: row[name] for name in small.rows[0] if name != "notes"} for row in small.rows]
    for name in ("original", "released"):
        write_csv(folder / f"{name}.csv", rows)
    steward = Steward(folder / "steward", numbers())
    (folder / "steward").mkdir()
    entry = steward.release()
    home = str(folder / "steward" / "home")
    return [
        ["check", str(small.file)],
        ["status", "--home", home],
        ["show", str(entry["release_id"]), "--home", home],
        ["verify", str(ROOT / "tests" / "fixtures" / "published")],
        [
            "audit",
            *("--original", str(folder / "original.csv")),
            *("--released", str(folder / "released.csv")),
            *("--policy", str(folder / "quick.toml")),
        ],
    ]


@pytest.mark.slow
def test_commands_run_to_their_end_without_prefect_and_mlflow(tmp_path: Path):
    code = f"""
from ppdm.cli.app import main
for arguments in {list_commands(tmp_path)!r}:
    try:
        main(arguments)
    except SystemExit as end:
        assert end.code in (0, 3, 4), (arguments, end.code)
"""
    assert list_loaded(code, {"prefect", "mlflow"}) == []
