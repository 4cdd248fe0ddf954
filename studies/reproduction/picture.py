"""What a picture beside a figure of a paper shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

Pair = tuple[str, str]


@dataclass(frozen=True)
class Picture:
    """Series over an axis, single values by label, points, or clouds of records.

    Clouds have their own panels; all others have one for each table.
    """

    name: str
    place: str  # the figure of the paper
    title: str
    experiment: str
    series: Mapping[str, str] = field(default_factory=dict)  # label -> quantity before "/axis="
    axis: str = ""  # name before "=" in quantities
    label: str = ""  # of the axis
    is_log: bool = False
    values: Mapping[str, str] = field(default_factory=dict)  # label -> quantity, without an axis
    # label -> pairs of quantities, one across and one up, joined by a line
    points: Mapping[str, Sequence[Pair]] = field(default_factory=dict)
    # title of a panel -> label -> pair of quantities that have one value for each record
    clouds: Mapping[str, Mapping[str, Pair]] = field(default_factory=dict)
    up: str = ""  # label of the other axis
    tables: Sequence[str] = ()  # by default all

    @property
    def paper(self) -> str:
        return self.place.split(" ")[0]
