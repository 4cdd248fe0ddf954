"""`ppdm methods`: what the registries hold, in words.

Everything comes from the registered classes and their docstrings; nothing is listed here by hand.
Each thing is first described as data (for `--json`), and the text is made of that.
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
from ppdm_core.gates.required_audits import GOALS
from ppdm_core.gates.score_limits import in_words
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
        entries = {kind: [tell(key) for key in registry] for kind, registry, tell in registries()}
        payload = {kind: [shortened(entry) for entry in told] for kind, told in entries.items()}
        return CommandResult("\n".join(overview(payload)), payload)
    for _, registry, tell in registries():
        if name in registry:
            entry = tell(name)
            return CommandResult("\n".join(page(entry)), entry)
    from flows.config.errors import nearest

    known = [key for _, registry, _ in registries() for key in registry]
    raise BadInput(f"Nothing is called '{name}'.", remedy=nearest(name, known))


def registries() -> Iterator[tuple[str, Mapping[str, Any], Callable[[str], Entry]]]:
    yield "sanitizers", SANITIZERS, sanitizer_entry
    yield "attacks", ATTACKS, attack_entry
    yield "metrics", METRICS, metric_entry
    yield "gates", GATES, gate_entry


def sections(cls: type) -> dict[str, str]:
    """The docstring of a class by its titles; what stands before the first has the title ""."""
    before, *titled = _TITLE.split(inspect.cleandoc(cls.__doc__ or ""))
    return {"": before, **dict(zip(titled[::2], titled[1::2], strict=True))}


def meanings(cls: type[Sanitizer]) -> dict[str, str]:
    """What each parameter means, from the class and those it derives from."""
    found: dict[str, str] = {}
    for owner in reversed(cls.__mro__):
        _, *named = _PARAMETER.split(sections(owner).get("Parameters", ""))
        found |= dict(zip(named[::2], map(plain, named[1::2]), strict=True))
    return found


def plain(text: str) -> str:
    return " ".join(text.replace("``", "`").split())


def paragraphs(text: str) -> list[str]:
    return [plain(part) for part in re.split(r"\n\s*\n", text.strip())]


def sanitizer_entry(name: str) -> Entry:
    cls = SANITIZERS[name]
    told = sections(cls)
    return {
        "kind": "sanitizer",
        "name": name,
        "what": paragraphs(told[""]),
        "takes": [f"{kind} features" for kind in sorted(cls.accepts)],
        "guarantee": plain(told.get("Guarantee", "")),
        "broken_by": plain(told.get("Broken by", "")),
        "public": plain(told.get("Public", "")),
        "references": plain(told.get("References", "")),
        "parameters": parameters(cls),
        "example": {"method": name, **cls.example},
    }


def parameters(cls: type[Sanitizer]) -> list[Entry]:
    """Those of the method first, then those that all methods have."""
    shared = {field.name for field in fields(Sanitizer)}
    meaning = meanings(cls)

    def told(field: Field[Any]) -> Entry:
        required = field.default is MISSING
        return {
            "name": field.name,
            "required": required,
            "default": None if required else field.default,
            "meaning": meaning.get(field.name, ""),
        }

    return [told(each) for each in sorted(fields(cls), key=lambda each: each.name in shared)]


def attack_entry(name: str) -> Entry:
    attack = ATTACKS[name]
    told = sections(type(attack))
    metrics = [metric for metric in METRICS.values() if metric.goal == attack.goal]
    return {
        "kind": "attack",
        "name": name,
        "goal": attack.goal,
        "story": attack.story.format(k="some"),
        "needs": describe_needs(attack),
        "what": paragraphs(told[""])[1:],  # the first is the story again
        "breaks": [key for key, cls in SANITIZERS.items() if is_broken(cls, name)],
        "references": plain(told.get("References", "")),
        "measured_by": [metric.name for metric in metrics],
        "limits": [limit_on(f"{name}.{metric.name}", metric) for metric in metrics],
    }


def is_broken(cls: type[Sanitizer], attack: str) -> bool:
    return f"``{attack}``" in sections(cls).get("Broken by", "")


def metric_entry(name: str) -> Entry:
    metric = METRICS[name]
    told = sections(type(metric))
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
        "what": paragraphs(told[""]),
        "references": plain(told.get("References", "")),
        "measured_on": ["the release itself"] if metric.goal == "release" else attacks,
        "limits": [limit_on(key, metric) for key in keys] if metric.gateable else [],
    }


def limit_on(key: str, metric: Metric) -> Entry:
    """A line for [limits] that is accepted as it stands, and what it demands."""
    absolute = metric.kind == "utility"
    limit = Limit(0.5 if absolute else 0.05, "who", "why", absolute)
    line: Entry = {"value": limit.value, **({"absolute": True} if absolute else {})}
    line |= {"set_by": limit.set_by, "reason": limit.reason}
    return {"key": key, "limit": line, "demands": in_words(metric, limit)}


def gate_entry(name: str) -> Entry:
    what = paragraphs(sections(type(GATES[name]))[""])
    return {"kind": "gate", "name": name, "what": what}


SHORT = {
    "sanitizer": ("name", "what", "guarantee", "broken_by"),
    "attack": ("name", "goal", "story", "needs"),
    "metric": ("name", "of", "better", "range", "measures"),
    "gate": ("name", "what"),
}


def shortened(entry: Entry) -> Entry:
    short = {key: entry[key] for key in SHORT[entry["kind"]]}
    return {**short, "what": entry["what"][:1]} if "what" in short else short


TITLES = {
    "sanitizers": "Sanitizers make the release",
    "attacks": "Attacks are played against it",
    "metrics": "Metrics say how far an attack got, and what the release is worth",
    "gates": "Gates judge; all of them always run",
}
IN_HEADING = ("kind", "name", "goal", "of", "better", "range")
WITHOUT_LABEL = ("what", "story", "measures")


def overview(payload: Mapping[str, list[Entry]]) -> Iterator[str]:
    for kind, entries in payload.items():
        yield TITLES[kind]
        for entry in entries:
            yield "  " + ": ".join(filter(None, (entry["name"], aside(entry))))
            yield from body(entry, 4)
        yield ""
    yield "One of them in full: ppdm methods NAME"


def page(entry: Entry) -> Iterator[str]:
    yield ", ".join(filter(None, (f"{entry['name']}: {entry['kind']}", aside(entry))))
    yield from body(entry, 2)


def aside(entry: Entry) -> str:
    """What of an entry is said beside its name."""
    if "goal" in entry:
        return GOALS[entry["goal"]]
    if "range" not in entry:
        return ""
    low, high = entry["range"]
    direction = "more" if entry["better"] == "up" else "less"
    reach = f"{low:g} or more" if high is None else f"{low:g} to {high:g}"
    return f"{entry['of']}, {direction} is better, {reach}"


def body(entry: Entry, indent: int) -> Iterator[str]:
    for key, value in entry.items():
        if key in BLOCKS:
            yield ""
            yield from (" " * indent + line for line in BLOCKS[key](value))
        elif value and key not in IN_HEADING:
            parts = [value] if isinstance(value, str) else value
            if key not in WITHOUT_LABEL:
                parts = [f"{key.replace('_', ' ')}: {', '.join(parts)}"]
            for part in parts:
                yield from wrapped(part, indent, hanging=2)


def wrapped(text: str, indent: int, hanging: int = 0, width: int = WIDTH) -> list[str]:
    return textwrap.wrap(
        text[:1].upper() + text[1:],
        width,
        initial_indent=" " * indent,
        subsequent_indent=" " * (indent + hanging),
        break_on_hyphens=False,
    )


def parameter_lines(given: list[Entry]) -> Iterator[str]:
    yield "Parameters, with their defaults:"
    for each in given:
        default = "not set" if each["default"] is None else toml(each["default"])
        yield f"  {each['name']}: {'must be given' if each['required'] else default}"
        yield from wrapped(each["meaning"], 4, width=WIDTH - 2)  # the page indents it once more


def example_lines(example: Entry) -> Iterator[str]:
    yield "[sanitizer]"
    yield from (f"{key} = {toml(value)}" for key, value in example.items())


def limit_lines(limits: list[Entry]) -> Iterator[str]:
    if not limits:
        yield "For screening only: no limit may stand on it."
        return
    yield "[limits]"
    if any("." in each["key"] for each in limits):
        yield "# An attack with a limit must stand in 'required' of [audit], too."
    for each in limits:
        yield f"# {each['demands']}"
        line = f'"{each["key"]}" = {toml(each["limit"])}'
        if len(line) <= WIDTH - 2:  # the page indents it
            yield line
        else:
            yield from (f'"{each["key"]}".{k} = {toml(v)}' for k, v in each["limit"].items())


BLOCKS: dict[str, Callable[[Any], Iterator[str]]] = {
    "parameters": parameter_lines,
    "example": example_lines,
    "limits": limit_lines,
}


def toml(value: Any) -> str:
    """Numbers, text and lists are written as in JSON; only tables are not."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {toml(each)}" for key, each in value.items()) + " }"
    return json.dumps(value)
