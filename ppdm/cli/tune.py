"""`ppdm tune`: run the flow that searches settings, and write the release file that it proposes."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ppdm.cli.flow_runs import run_to_end
from ppdm.cli.home import check_new_file
from ppdm.cli.release_files import read_release_file
from ppdm.cli.report import check_report_file
from ppdm.cli.result import CommandResult
from ppdm_core.model.errors import BadInput, Interrupted, Refused
from tasks.context import ReleaseContext

if TYPE_CHECKING:
    from prefect import State

    from flows.config.release_file import ReleaseFile
    from tasks.tune.result import TuneResult


@dataclass(frozen=True)
class TuneRequest:
    """The options of the command."""

    out: Path | None
    utilities: Sequence[str]
    methods: Sequence[str]
    settings: int
    report: Path | None


def tune_file(path: Path, request: TuneRequest) -> CommandResult:
    """Search settings for a release file; write the proposed file and the page."""
    from ppdm.cli.tune_view import DECIDE, build_tune_reply, render_tune
    from tasks.tune.page import describe_outcome, find_page, render_page, write_page

    file, context = read_release_file(path)
    out = request.out or path.with_name(f"{path.stem}_tuned.toml")
    check_out(path, out)
    check_report_file(request.report)
    check_request(path, context, request)
    result = run_tune(path, file, context, request)
    written = None if result.choice is None else out
    if written is not None:
        write_tuned_file(path, written, result)
    page = request.report or find_page(Path(context.home), result)
    write_page(page, render_page(result, context.policy, written.name if written else ""))
    reply = build_tune_reply(result, written, page)
    view, payload = render_tune(result, written, page), reply.as_payload()
    if written is not None:
        return CommandResult(view, payload)
    error = Refused(describe_outcome(result), file=str(path), remedy=DECIDE)
    return CommandResult(view, payload, error.exit_code, error)


def check_out(path: Path, out: Path) -> None:
    """Raise BadInput if the proposed file cannot be written beside the release file."""
    check_new_file(out)
    if out.resolve().parent != path.resolve().parent:
        raise BadInput(
            f"{out.name} must be in the folder of {path.name}, where relative paths start.",
            file=str(out),
            remedy="Name a file in that folder, and move it later.",
        )


def check_request(path: Path, context: ReleaseContext, request: TuneRequest) -> None:
    """Raise BadInput if the options do not suit the release file."""
    from tasks.tune.plan import TuneOptions, check_options

    options = TuneOptions(tuple(request.utilities), tuple(request.methods), request.settings)
    try:
        check_options(context, options)
    except BadInput as error:
        raise error.in_file(str(path), only_unnamed=True) from None


def run_tune(
    path: Path, file: ReleaseFile, context: ReleaseContext, request: TuneRequest
) -> TuneResult:
    """Run the flow against a Prefect server, and return what it stored."""

    def run() -> State[Any]:
        from flows.tune import tune

        return tune(
            file,
            utility=list(request.utilities),
            methods=list(request.methods),
            settings=request.settings,
            return_state=True,
        )

    interrupted = Interrupted(
        f"The tune of {context.dataset} was interrupted; finished settings are kept.",
        remedy=f"To continue: ppdm tune {shlex.quote(str(path))}",
    )
    run_to_end(Path(context.home), run, interrupted)
    return read_result(context)


def read_result(context: ReleaseContext) -> TuneResult:
    """Return the last tune of a dataset, from the warehouse, which is the record."""
    from tasks.tune.result import load_tune

    with context.open_store().transaction(f"{context.dataset} tune") as db:
        result = load_tune(db, context.dataset)
    assert result is not None
    return result


def write_tuned_file(path: Path, out: Path, result: TuneResult) -> None:
    """Write the release file with the proposed method and parameters; all else stays."""
    import tomlkit

    from warehouse.home import translate_disk_errors

    assert result.choice is not None
    setting = result.choice.setting
    content = tomlkit.parse(path.read_text(encoding="utf-8"))
    section = tomlkit.table()
    section.comment(f"settings: chosen on the data, {result.tried_in_all} tried by `ppdm tune`")
    section["method"] = setting.method
    for name, value in setting.parameters.items():
        section[name] = make_inline(value)
    content["sanitizer"] = section
    with translate_disk_errors(out.parent), out.open("x", encoding="utf-8") as written:
        written.write(tomlkit.dumps(content))


def make_inline(value: object) -> object:
    """Return a value for TOML; a mapping becomes an inline table."""
    import tomlkit

    if not isinstance(value, dict):
        return value
    table = tomlkit.inline_table()
    table.update({name: make_inline(each) for name, each in value.items()})
    return table
