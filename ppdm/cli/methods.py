"""`ppdm methods`: describe what the registries hold.

Everything comes from the registered classes and their docstrings. Each entry is first built as
data (for `--json`), and the text is formatted from that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, fields
from typing import Any

from flows.config.toml_values import format_toml_value
from ppdm.cli.console import get_width, wrap_text
from ppdm.cli.docstrings import (
    join_lines,
    read_parameter_meanings,
    split_docstring,
    split_paragraphs,
)
from ppdm.cli.replies.others import MethodsReply
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


def describe_methods(name: str | None) -> CommandResult:
    """Return a short entry for everything that is registered, or one complete entry."""
    if name is None:
        payload = {
            kind: [shorten_entry(build_entry(key)) for key in registry]
            for kind, registry, build_entry in list_registries()
        }
        reply = MethodsReply.model_validate(payload)
        return CommandResult("\n".join(format_overview(payload)), reply.as_payload())
    builders = {key: build for _, registry, build in list_registries() for key in registry}
    if name not in builders:
        from ppdm_core.settings.errors import suggest_name

        raise BadInput(f"Nothing is called '{name}'.", remedy=suggest_name(name, list(builders)))
    entry = builders[name](name)
    reply = MethodsReply.model_validate({"entry": entry})
    return CommandResult("\n".join(format_page(entry)), reply.as_payload())


def list_registries() -> Iterator[tuple[str, Mapping[str, Any], Callable[[str], Entry]]]:
    """Yield the title of each registry, the registry, and the function that builds an entry."""
    yield "sanitizers", SANITIZERS, build_sanitizer_entry
    yield "attacks", ATTACKS, build_attack_entry
    yield "metrics", METRICS, build_metric_entry
    yield "gates", GATES, build_gate_entry


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
    return [
        {
            "name": field.name,
            "required": field.default is MISSING,
            "default": None if field.default is MISSING else field.default,
            "meaning": meanings.get(field.name, ""),
        }
        for field in sorted(fields(cls), key=lambda field: field.name in shared)
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
        "breaks": [
            key
            for key, cls in SANITIZERS.items()
            if f"``{name}``" in split_docstring(cls).get("Broken by", "")
        ],
        "references": join_lines(parts.get("References", "")),
        "measured_by": [metric.name for metric in metrics],
        "limits": [build_limit(f"{name}.{metric.name}", metric) for metric in metrics],
    }


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
TITLES = {
    "sanitizers": "Sanitizers make the release",
    "attacks": "Attacks are run against it",
    "metrics": "Metrics measure how far an attack got, and how useful the release is",
    "gates": "Gates judge the release; all of them always run",
}
HEADING_KEYS = ("kind", "name", "goal", "of", "better", "range")
UNLABELLED_KEYS = ("what", "story", "measures")


def shorten_entry(entry: Entry) -> Entry:
    """Return what the overview shows of an entry; of its description, the first paragraph."""
    keys = SHORT_ENTRY_KEYS[entry["kind"]]
    return {key: entry[key][:1] if key == "what" else entry[key] for key in keys}


def format_overview(payload: Mapping[str, list[Entry]]) -> Iterator[str]:
    """Yield a short description of every entry, by registry."""
    for kind, entries in payload.items():
        yield TITLES[kind]
        for entry in entries:
            yield "  " + ": ".join(filter(None, (entry["name"], format_kind(entry))))
            yield from format_body(entry, "    ")
        yield ""
    yield "One of them in full: ppdm methods NAME"


def format_page(entry: Entry) -> Iterator[str]:
    """Yield one entry in full."""
    yield ", ".join(filter(None, (f"{entry['name']}: {entry['kind']}", format_kind(entry))))
    yield from format_body(entry, "  ")


def format_kind(entry: Entry) -> str:
    """Return what follows the name of an entry: a goal, or kind, direction and range."""
    if "goal" in entry:
        return GOAL_NAMES[entry["goal"]]
    if "range" not in entry:
        return ""
    low, high = entry["range"]
    reach = f"{low:g} or more" if high is None else f"{low:g} to {high:g}"
    return f"{entry['of']}, {'more' if entry['better'] == 'up' else 'less'} is better, {reach}"


def format_body(entry: Entry, indent: str) -> Iterator[str]:
    """Yield the texts and blocks of an entry."""
    for key, value in entry.items():
        if key in BLOCKS:
            yield ""
            yield from (indent + line for line in BLOCKS[key](value))
        elif value and key not in HEADING_KEYS:
            parts = [value] if isinstance(value, str) else value
            if key not in UNLABELLED_KEYS:
                parts = [f"{key.replace('_', ' ')}: {', '.join(parts)}"]
            for part in parts:
                yield from wrap_text(capitalize_first(part), indent, f"{indent}  ")


def capitalize_first(text: str) -> str:
    """Return a text with a capital at its start, and all else unchanged."""
    return text[:1].upper() + text[1:]


def format_parameters(parameters: list[Entry]) -> Iterator[str]:
    """Yield each parameter with its default and meaning."""
    yield "Parameters, with their defaults:"
    for each in parameters:
        default = "not set" if each["default"] is None else format_toml_value(each["default"])
        yield f"  {each['name']}: {'must be given' if each['required'] else default}"
        # Wrapped with the indent of the page, which is added later.
        yield from (line[2:] for line in wrap_text(capitalize_first(each["meaning"]), " " * 6))


def format_example(example: Entry) -> Iterator[str]:
    """Yield an example of the [sanitizer] section."""
    yield "[sanitizer]"
    yield from (f"{key} = {format_toml_value(value)}" for key, value in example.items())


def format_limits(limits: list[Entry]) -> Iterator[str]:
    """Yield an example of the [limits] section, with what each limit demands."""
    if not limits:
        yield "For information only: a limit on it is not allowed."
        return
    yield "[limits]"
    if any("." in each["key"] for each in limits):
        yield "# An attack with a limit must also be in 'required' of [audit]."
    for each in limits:
        key, limit = each["key"], each["limit"]
        yield f"# {each['demands']}"
        line = f'"{key}" = {format_toml_value(limit)}'
        fits = len(line) <= get_width() - 2  # the page indents it
        yield from (
            [line] if fits else (f'"{key}".{k} = {format_toml_value(limit[k])}' for k in limit)
        )


BLOCKS: dict[str, Callable[[Any], Iterator[str]]] = {
    "parameters": format_parameters,
    "example": format_example,
    "limits": format_limits,
}
