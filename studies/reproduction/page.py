"""The page about the claims: Markdown for the documentation, and one HTML file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from studies.reproduction.decision import Finding, Verdict
from studies.reproduction.measurement import Measurement
from studies.reproduction.page_cells import format_finding, read_sentences
from studies.reproduction.page_text import (
    Block,
    Grid,
    Heading,
    Image,
    Paragraph,
    render_html,
    render_markdown,
)
from studies.reproduction.picture_list import PICTURES
from studies.reproduction.pictures import draw_picture
from studies.reproduction.registry import Claim, Paper, read_registry
from studies.reproduction.tables import is_large, list_files

if TYPE_CHECKING:
    from tasks.reproduce.plan import Plan, Reproduction

TITLE = "The five papers, claim by claim"
HEADINGS = ("claim", "the paper says", "ours, 99 % interval, draws", "verdict", "why", "erratum")
PICTURES_FOLDER = "pictures/reproduction"


def write_reproduction(plan: Plan, found: Reproduction) -> None:
    """Write the pages, with all pictures for which there are results."""
    drawn = draw_pictures(plan, found, found.page.parent / PICTURES_FOLDER)
    blocks = list(build_page(plan, found, drawn))
    found.page.parent.mkdir(parents=True, exist_ok=True)
    found.page.write_text("\n".join(render_markdown(blocks)), encoding="utf-8")
    folder = plan.folder.parent
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "reproduction.html").write_text(
        render_html(TITLE, blocks, found.page.parent), encoding="utf-8"
    )


def build_page(plan: Plan, found: Reproduction, drawn: dict[str, str]) -> Iterator[Block]:
    """Yield the parts of the page, the count first."""
    papers, _ = read_registry()
    yield Heading(1, TITLE)
    yield Paragraph(describe_counts(found.findings))
    yield Paragraph(describe_run(plan, found))
    yield Paragraph(
        "Claims, tolerances and rules were committed before any experiment on this page, except "
        "where a row says that it was corrected: studies/reproduction/README.md explains fields "
        "and rules. A claim does not hold only "
        "if 99 % intervals exclude what the paper says. The scans that we have contain no "
        "pictures, so that for figures without numbers the trend is judged that the text "
        "describes. Grey bars in our pictures are ranges that the paper claims. Rows with a "
        "letter at the end are readings that came later, after first results were known. Of "
        "several readings of a claim one is counted, and the others say so. "
        "Claims that the first version had missed were committed before their experiments, too; "
        "the README lists them. "
        "Several of the papers' words have no number; our limit is then in parentheses."
    )
    counts = [count_paper(paper, found.findings) for paper in papers]
    headings = ("paper", "claims", *(str(verdict) for verdict in Verdict))
    yield Grid(headings, [row for row in counts if row[1] != "0"])
    for paper in papers:
        findings = [each for each in found.findings if each.claim.paper == paper.id]
        if not findings:
            continue
        yield Heading(2, f"{paper.id}: {paper.short}")
        counted = describe_counts(findings)
        yield Paragraph(f"{paper.authors}, “{paper.title}” ({paper.year}). {counted}")
        yield Grid(HEADINGS, [format_finding(each) for each in findings])
        for picture in PICTURES:
            if picture.name in drawn and picture.paper == paper.id:
                yield Image(drawn[picture.name], f"{picture.place}: {picture.title}")
    if plan.is_whole:
        yield from build_map(found.page.parent)
    yield Heading(2, "Known errors of the papers")
    used = {number for each in found.findings for number in each.claim.erratum}
    errata = read_sentences("errata.toml")
    rows = [(number, errata[number]) for number in errata if number in used]
    yield Grid(("number", "what is wrong"), rows)
    yield Heading(2, "Data")
    yield Paragraph(
        "PPDM_DATA names the folder of these files. Generated tables (synthetic_2, synthetic_8, "
        "synthetic_50, normal_2d) follow the descriptions in the papers, centres_2 and centres_8 "
        "another reading of the first two. Constant columns are left out, except where a row says "
        "otherwise, and empty cells get the median of their column."
    )
    files = list_files(table for each in found.findings for table in each.claim.data)
    cells = [(f.file, f"{f.rows:,}", f.origin, f"{f.sha256}…") for f in files.values()]
    yield Grid(("file", "records", "origin", "SHA-256"), cells)


def build_map(folder: Path) -> Iterator[Block]:
    """Yield what the map of methods shows, once it is complete."""
    from studies.reproduction import draw_map
    from studies.reproduction.map_text import describe_map
    from studies.reproduction.method_map import (
        NEAR_SHARE,
        SETTINGS,
        SLOWEST_ATTACK,
        TABLES,
        read_map,
    )

    audits = read_map()
    if len(draw_map.choose_common(audits)) < len(TABLES) * len(SETTINGS):
        return
    yield Heading(2, "Beyond the papers: which method to use today")
    yield Paragraph(" ".join(describe_map(audits)))
    for name, draw, title in (
        (
            "frontier",
            draw_map.draw_frontier,
            "Largest risk above its baseline against accuracy, four numeric tables, 200 records, "
            "one draw. Filled: at the common utility, all attacks. Open: least and most noise, "
            f"all attacks but {SLOWEST_ATTACK}, so that open points may be too low",
        ),
        (
            "map",
            draw_map.draw_heat_map,
            "Points of each attack above its baseline at the common utility, four numeric tables, "
            "200 records, one draw. Empty: the attack does not apply, or has no rate. *: not "
            f"within {100 * NEAR_SHARE:.0f} points of the common utility, and not compared",
        ),
    ):
        path = f"{PICTURES_FOLDER}/{name}.svg"
        draw(audits, folder / path)
        yield Image(path, title)


def describe_counts(findings: Sequence[Finding]) -> str:
    """Return how many claims hold, in one sentence; other readings are not counted."""
    counted = Counter(each.verdict for each in findings if not each.claim.variant_of)
    total = sum(counted.values())
    return (
        f"{counted[Verdict.HOLDS]} of {total} hold, {counted[Verdict.PART]} in part, "
        f"{counted[Verdict.FAILS]} do not, {counted[Verdict.OPEN]} cannot be decided."
    )


def describe_run(plan: Plan, found: Reproduction) -> str:
    """Return how the page was made."""
    words = "ppdm reproduce --full" if plan.is_full else "ppdm reproduce"
    missing = ""
    if plan.unmeasured:
        words += " --measured"
        missing = f" {plan.unmeasured} further claims are not measured yet, and not on this page."
    older = sum(
        not all(job in found.results and found.results[job].is_current(job) for job in jobs)
        for jobs in (list_jobs(plan, claim) for claim in plan.claims)
    )
    earlier = f" {older} rows rest on a run of an earlier version of the code." if older else ""
    return (
        f"Made by `{words}`: {len(found.results)} measurements, "
        f"{found.cpu_seconds / 60:.1f} minutes of processor time{describe_time(found)}."
        f"{earlier}{missing}"
    )


def describe_time(found: Reproduction) -> str:
    """Return the wall time and the number of processes, as far as they are known."""
    time = found.time
    if time is None:
        return ""
    of = "" if time.measured >= len(found.results) else f" for {time.measured} of them"
    plural = "process" if time.processes == 1 else "processes"
    return f"; {time.seconds / 60:.1f} minutes on {time.processes} {plural}{of}"


def count_paper(paper: Paper, findings: Sequence[Finding]) -> tuple[str, ...]:
    """Return the numbers of verdicts on one paper."""
    own = [each for each in findings if each.claim.paper == paper.id and not each.claim.variant_of]
    counted = Counter(each.verdict for each in own)
    numbers = (str(counted[verdict]) for verdict in Verdict)
    return (f"{paper.id} {paper.short}", str(len(own)), *numbers)


def draw_pictures(plan: Plan, found: Reproduction, folder: Path) -> dict[str, str]:
    """Draw all pictures; return their paths, relative to the page, by name.

    A committed picture stays as it is if a result is missing that it shows.
    """
    results: dict[str, dict[str, dict[str, Sequence[float]]]] = {}
    incomplete = set()
    for claim in (each for each in plan.claims if not each.variant_of):
        for job in list_jobs(plan, claim):
            tables = results.setdefault(job.experiment, {})
            if job in found.results:
                tables.setdefault(job.table, {}).update(found.results[job].quantities)
            else:
                incomplete.add(job.experiment)
    drawn = {}
    for picture in PICTURES:
        path = folder / f"{picture.name}.svg"
        own = [claim for claim in plan.claims if claim.experiment == picture.experiment]
        is_kept = plan.is_whole and picture.experiment in incomplete and path.exists()
        if is_kept or draw_picture(picture, results.get(picture.experiment, {}), own, path):
            drawn[picture.name] = f"{PICTURES_FOLDER}/{path.name}"
    return drawn


def list_jobs(plan: Plan, claim: Claim) -> list[Measurement]:
    """Return the measurements of a claim."""
    large = frozenset(table for table in claim.data if is_large(table))
    return list(claim.list_measurements(large, full=plan.is_full))
