"""Settings that a tune tries: a grid over what each method declares, bounded in number."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ppdm_core.model.errors import BadInput
from ppdm_core.sanitizers import SANITIZERS, make_sanitizer
from ppdm_core.sanitizers._sweep import Axes, SweepScope


@dataclass(frozen=True)
class Setting:
    """A method with its parameters."""

    method: str
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """Identity of the setting."""
        text = json.dumps([self.method, self.parameters], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def title(self) -> str:
        """Method and parameters on one line, without those that are left at "" or none."""
        given = ", ".join(f"{name} {format_value(each)}" for name, each in self.parameters.items())
        return f"{self.method}: {given}" if given else self.method


def format_value(value: Any) -> str:
    """Return the value of a parameter in a few characters."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {format_value(each)}" for name, each in value.items())
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:g}" if isinstance(value, float) else str(value)


def list_settings(
    present: Setting, methods: Sequence[str], scope: SweepScope, most: int
) -> list[Setting]:
    """Return at most ``most`` settings, the present one first.

    Methods share the number evenly. Each varies what it declares in ``list_axes``.
    """
    found = {present.digest: present}
    for place, method in enumerate(methods):
        share = (most - len(found)) // (len(methods) - place)
        given = present.parameters if method == present.method else {}
        for setting in list_method_settings(method, given, scope, share):
            found.setdefault(setting.digest, setting)
    return list(found.values())[:most]


def list_method_settings(
    method: str, given: Mapping[str, Any], scope: SweepScope, most: int
) -> list[Setting]:
    """Return the settings of one method; those that it does not accept are left out."""
    cls = SANITIZERS[method]
    given = given or cls.suggest_parameters(scope.features, scope.gamma or DEFAULT_GAMMA)
    axes = thin_axes(cls.list_axes(scope, given), most)
    settings = []
    for changes in itertools.product(*axes.values()):
        merged = merge_changes(given, changes)
        try:
            sanitizer = make_sanitizer(method, merged)
            sanitizer.check_kinds(scope.numeric, scope.categorical)
        except BadInput:  # a combination that the method does not have
            continue
        settings.append(Setting(method, merged))
    return settings


DEFAULT_GAMMA = 1000.0  # of a record, where no limit is on it


def merge_changes(given: Mapping[str, Any], changes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return parameters with changes; None removes one, and tables are merged key by key."""
    merged = dict(given)
    for change in changes:
        for name, value in change.items():
            own = merged.get(name)
            if value is None:
                merged.pop(name, None)
            elif isinstance(value, Mapping) and isinstance(own, Mapping) and "method" in own:
                merged[name] = merge_changes(own, [value])
            else:
                merged[name] = value
    return merged


def thin_axes(axes: Axes, most: int) -> Axes:
    """Return the axes with so few values that at most ``most`` combinations are left.

    The longest axis loses values first, the least promising one first.
    """
    counts = {name: len(values) for name, values in axes.items()}
    while count_product(counts.values()) > max(1, most):
        longest = max(counts, key=lambda name: counts[name])
        counts[longest] -= 1
    return {name: values[: counts[name]] for name, values in axes.items()}


def count_product(counts: Any) -> int:
    """Return the product of some counts."""
    product = 1
    for each in counts:
        product *= each
    return product
