"""`ppdm methods`: describe what the registries hold.

Everything comes from the registered classes and their docstrings. Each entry is first built as
data (for `--json`), and the text is formatted from that.
"""

from __future__ import annotations

import inspect
import json
import math
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, fields
from typing import Any

from ppdm.cli.console import WIDTH
from ppdm.cli.result import CommandResult
from ppdm_core.attacks import ATTACKS, describe_needs
from ppdm_core.gates import GATES
from ppdm_core.gates.required_audits import GOAL_NAMES
from ppdm_core.gates.score_limits import format_limit
from ppdm_core.metrics import CLASSIFIERS, METRICS, Metric
from ppdm_core.model.errors import BadInput
from ppdm_core.model.policy import Limit
from ppdm_core.sanitizers import SANITIZERS, Sanitizer

Entry = dict[str, Any]

_TITLE = re.compile(
    r"^\**(Parameters|Public|Broken by|Guarantee|References)\**:\s*", flags=re.MULTILINE
)
_PARAMETER = re.compile(r"^``(\w+)``:\s*", flags=re.MULTILINE)


def describe_methods(name: str | None) -> CommandResult:
    """Return a short entry for everything that is registered, or one complete entry."""
    if name is None:
        payload = {
            kind: [shorten_entry(build_entry(key)) for key in registry]
            for kind, registry, build_entry in list_registries()
        }
        return CommandResult("\n".join(format_overview(payload)), payload)
    for _, registry, build_entry in list_registries():
        if name in registry:
            entry = build_entry(name)
            return CommandResult("\n".join(format_page(entry)), entry)
    from ppdm_core.settings.errors import suggest_name

    known = [key for _, registry, _ in list_registries() for key in registry]
    raise BadInput(f"Nothing is called '{name}'.", remedy=suggest_name(name, known))


def list_registries() -> Iterator[tuple[str, Mapping[str, Any], Callable[[str], Entry]]]:
    """Yield the title of each registry, the registry, and the function that builds an entry."""
    yield "sanitizers", SANITIZERS, build_sanitizer_entry
    yield "attacks", ATTACKS, build_attack_entry
    yield "metrics", METRICS, build_metric_entry
    yield "gates", GATES, build_gate_entry


def split_docstring(cls: type) -> dict[str, str]:
    """Return the parts of a class docstring by title; the part before the first title has ""."""
    before, *titled = _TITLE.split(inspect.cleandoc(cls.__doc__ or ""))
    return {"": before, **dict(zip(titled[::2], titled[1::2], strict=True))}


def read_parameter_meanings(cls: type[Sanitizer]) -> dict[str, str]:
    """Return the meaning of each parameter, from the class and its base classes."""
    found: dict[str, str] = {}
    for owner in reversed(cls.__mro__):
        _, *named = _PARAMETER.split(split_docstring(owner).get("Parameters", ""))
        found |= dict(zip(named[::2], map(join_lines, named[1::2]), strict=True))
    return found


def join_lines(text: str) -> str:
    """Return a text on one line, with single backticks."""
    return " ".join(text.replace("``", "`").split())


def split_paragraphs(text: str) -> list[str]:
    """Return the paragraphs of a text, each on one line."""
    return [join_lines(part) for part in re.split(r"\n\s*\n", text.strip())]


def build_sanitizer_entry(name: str) -> Entry:
    """Return the description of a sanitizer."""
    cls = SANITIZERS[name]
    parts = split_docstring(cls)
    return {
        "kind": "sanitizer",
        "name": name,
        "what": split_paragraphs(parts[""]),
        "takes": [f"{kind} features" for kind in sorted(cls.accepts)],
        "guarantee": join_lines(parts.get("Guarantee", "")),
        "broken_by": join_lines(parts.get("Broken by", "")),
        "public": join_lines(parts.get("Public", "")),
        "references": join_lines(parts.get("References", "")),
        "parameters": list_parameters(cls),
        "example": {"method": name, **cls.example},
    }


def list_parameters(cls: type[Sanitizer]) -> list[Entry]:
    """Return the parameters of the method, then those that all methods have."""
    shared = {field.name for field in fields(Sanitizer)}
    meanings = read_parameter_meanings(cls)

    def describe_parameter(field: Field[Any]) -> Entry:
        required = field.default is MISSING
        return {
            "name": field.name,
            "required": required,
            "default": None if required else field.default,
            "meaning": meanings.get(field.name, ""),
        }

    return [
        describe_parameter(each)
        for each in sorted(fields(cls), key=lambda each: each.name in shared)
    ]


def build_attack_entry(name: str) -> Entry:
    """Return the description of an attack."""
    attack = ATTACKS[name]
    parts = split_docstring(type(attack))
    metrics = [metric for metric in METRICS.values() if metric.goal == attack.goal]
    return {
        "kind": "attack",
        "name": name,
        "goal": attack.goal,
        "story": attack.story.format(k="some"),
        "needs": describe_needs(attack),
        "what": split_paragraphs(parts[""])[1:],  # the first is the story again
        "breaks": [key for key, cls in SANITIZERS.items() if is_broken_by(cls, name)],
        "references": join_lines(parts.get("References", "")),
        "measured_by": [metric.name for metric in metrics],
        "limits": [build_limit(f"{name}.{metric.name}", metric) for metric in metrics],
    }


def is_broken_by(cls: type[Sanitizer], attack: str) -> bool:
    """Return whether a sanitizer names an attack among those that break it."""
    return f"``{attack}``" in split_docstring(cls).get("Broken by", "")


def build_metric_entry(name: str) -> Entry:
    """Return the description of a metric."""
    metric = METRICS[name]
    parts = split_docstring(type(metric))
    low, high = (bound if math.isfinite(bound) else None for bound in metric.bounds)
    attacks = [key for key, attack in ATTACKS.items() if attack.goal == metric.goal]
    if metric.goal == "change":
        attacks = list(CLASSIFIERS)
    keys = [name] if metric.goal == "release" else [f"{attack}.{name}" for attack in attacks]
    return {
        "kind": "metric",
        "name": name,
        "of": metric.kind,
        "better": metric.better,
        "range": [low, high],
        "measures": metric.describe,
        "what": split_paragraphs(parts[""]),
        "references": join_lines(parts.get("References", "")),
        "measured_on": ["the release itself"] if metric.goal == "release" else attacks,
        "limits": [build_limit(key, metric) for key in keys] if metric.gateable else [],
    }


def build_limit(key: str, metric: Metric) -> Entry:
    """Return a line for [limits] that is accepted unchanged, and what it demands."""
    absolute = metric.kind == "utility"
    limit = Limit(0.5 if absolute else 0.05, "who", "why", absolute)
    line: Entry = {"value": limit.value, **({"absolute": True} if absolute else {})}
    line |= {"set_by": limit.set_by, "reason": limit.reason}
    return {"key": key, "limit": line, "demands": format_limit(metric, limit)}


def build_gate_entry(name: str) -> Entry:
    """Return the description of a gate."""
    what = split_paragraphs(split_docstring(type(GATES[name]))[""])
    return {"kind": "gate", "name": name, "what": what}


SHORT_ENTRY_KEYS = {
    "sanitizer": ("name", "what", "guarantee", "broken_by"),
    "attack": ("name", "goal", "story", "needs"),
    "metric": ("name", "of", "better", "range", "measures"),
    "gate": ("name", "what"),
}


def shorten_entry(entry: Entry) -> Entry:
    """Return the keys of an entry that the overview shows."""
    short = {key: entry[key] for key in SHORT_ENTRY_KEYS[entry["kind"]]}
    return {**short, "what": entry["what"][:1]} if "what" in short else short


TITLES = {
    "sanitizers": "Sanitizers make the release",
    "attacks": "Attacks are run against it",
    "metrics": "Metrics measure how far an attack got, and how useful the release is",
    "gates": "Gates judge the release; all of them always run",
}
HEADING_KEYS = ("kind", "name", "goal", "of", "better", "range")
UNLABELLED_KEYS = ("what", "story", "measures")


def format_overview(payload: Mapping[str, list[Entry]]) -> Iterator[str]:
    """Yield a short description of every entry, by registry."""
    for kind, entries in payload.items():
        yield TITLES[kind]
        for entry in entries:
            yield "  " + ": ".join(filter(None, (entry["name"], format_kind(entry))))
            yield from format_body(entry, 4)
        yield ""
    yield "One of them in full: ppdm methods NAME"


def format_page(entry: Entry) -> Iterator[str]:
    """Yield one entry in full."""
    yield ", ".join(filter(None, (f"{entry['name']}: {entry['kind']}", format_kind(entry))))
    yield from format_body(entry, 2)


def format_kind(entry: Entry) -> str:
    """Return what follows the name of an entry: a goal, or kind, direction and range."""
    if "goal" in entry:
        return GOAL_NAMES[entry["goal"]]
    if "range" not in entry:
        return ""
    low, high = entry["range"]
    direction = "more" if entry["better"] == "up" else "less"
    reach = f"{low:g} or more" if high is None else f"{low:g} to {high:g}"
    return f"{entry['of']}, {direction} is better, {reach}"


def format_body(entry: Entry, indent: int) -> Iterator[str]:
    """Yield the texts and blocks of an entry."""
    for key, value in entry.items():
        if key in BLOCKS:
            yield ""
            yield from (" " * indent + line for line in BLOCKS[key](value))
        elif value and key not in HEADING_KEYS:
            parts = [value] if isinstance(value, str) else value
            if key not in UNLABELLED_KEYS:
                parts = [f"{key.replace('_', ' ')}: {', '.join(parts)}"]
            for part in parts:
                yield from wrap_text(part, indent, hanging=2)


def wrap_text(text: str, indent: int, hanging: int = 0, width: int = WIDTH) -> list[str]:
    """Return wrapped lines that start with a capital; the later ones are indented further."""
    return textwrap.wrap(
        text[:1].upper() + text[1:],
        width,
        initial_indent=" " * indent,
        subsequent_indent=" " * (indent + hanging),
        break_on_hyphens=False,
    )


def format_parameters(parameters: list[Entry]) -> Iterator[str]:
    """Yield each parameter with its default and meaning."""
    yield "Parameters, with their defaults:"
    for each in parameters:
        default = "not set" if each["default"] is None else format_toml(each["default"])
        yield f"  {each['name']}: {'must be given' if each['required'] else default}"
        yield from wrap_text(each["meaning"], 4, width=WIDTH - 2)  # the page indents it once more


def format_example(example: Entry) -> Iterator[str]:
    """Yield an example of the [sanitizer] section."""
    yield "[sanitizer]"
    yield from (f"{key} = {format_toml(value)}" for key, value in example.items())


def format_limits(limits: list[Entry]) -> Iterator[str]:
    """Yield an example of the [limits] section, with what each limit demands."""
    if not limits:
        yield "For screening only: a limit on it is not allowed."
        return
    yield "[limits]"
    if any("." in each["key"] for each in limits):
        yield "# An attack with a limit must also be in 'required' of [audit]."
    for each in limits:
        yield f"# {each['demands']}"
        line = f'"{each["key"]}" = {format_toml(each["limit"])}'
        if len(line) <= WIDTH - 2:  # the page indents it
            yield line
        else:
            yield from (f'"{each["key"]}".{k} = {format_toml(v)}' for k, v in each["limit"].items())


BLOCKS: dict[str, Callable[[Any], Iterator[str]]] = {
    "parameters": format_parameters,
    "example": format_example,
    "limits": format_limits,
}


def format_toml(value: Any) -> str:
    """Return a value as TOML: as in JSON, except for tables."""
    if isinstance(value, Mapping):
        return (
            "{ " + ", ".join(f"{key} = {format_toml(each)}" for key, each in value.items()) + " }"
        )
    return json.dumps(value)
