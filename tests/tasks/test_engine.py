"""Private parts of a release are kept for the next run, or removed, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ppdm_core.model.errors import BadInput, MachineTrouble
from tasks.context import ReleaseContext
from tasks.engine import check_engine, open_engine, open_work
from tasks.ingest.task import begin_release
from tasks.notify.prefect_artifacts import ProgressBar
from tests.contract.broken_engines import InThisProcess
from tests.support.contexts import make_context
from warehouse.engines import EngineSettings
from warehouse.home import Home
from warehouse.locks import hold

RELEASE = "table-0001"


class Cluster(InThisProcess):
    """An engine that keeps parts; ``blind``: its workers see no folder."""

    keeps_parts = True
    blind = False

    def __init__(self, settings: EngineSettings, report: Any = None) -> None:
        super().__init__()
        self.report = report
        self.checked: list[Path] = []

    def check_folder(self, folder: Path) -> None:
        assert folder.is_dir()
        self.checked.append(folder)
        if self.blind:
            raise BadInput("Worker 'one' does not see the folder.", remedy="Name another one.")


class BlindCluster(Cluster):
    blind = True


class Processes(Cluster):
    keeps_parts = False


@pytest.fixture
def context(tmp_path: Path) -> ReleaseContext:
    made = make_context(tmp_path, engine=EngineSettings(kind="dask", address="tls://a:1"))
    (tmp_path / "t.csv").write_text("id,x,y\np,0.5,0.5\n")
    return made


def use(monkeypatch: pytest.MonkeyPatch, kind: type[Cluster]) -> None:
    monkeypatch.setattr("tasks.engine.load_engine", lambda name: kind)


def in_folder(context: ReleaseContext, folder: Path) -> ReleaseContext:
    return replace(context, engine=replace(context.engine, folder=str(folder)))


def list_parts(context: ReleaseContext) -> list[str]:
    """Return the private files of all releases, in the home and in folders next to it."""
    return sorted(
        path.name
        for top in (Path(context.home) / "private" / "work", *Path(context.folder).glob("disk*"))
        for path in top.rglob("*")
        if path.is_file()
    )


def work(context: ReleaseContext, kind: type[Cluster], error: BaseException | None = None) -> None:
    """Write a part, and end the work with an error, if there is one."""
    with open_work(context, RELEASE, kind(context.engine)) as folder:
        (folder / f"part-{len(list(folder.iterdir()))}").touch()
        if error is not None:
            raise error


@pytest.mark.parametrize("kind", [Cluster, Processes])
@pytest.mark.parametrize("where", ["home", "elsewhere"])
def test_open_work_success_parts_removed(
    context: ReleaseContext, tmp_path: Path, kind: type[Cluster], where: str
):
    if where == "elsewhere":
        context = in_folder(context, tmp_path / "disk")
    work(context, kind)
    assert list_parts(context) == []


@pytest.mark.parametrize("kind", [Cluster, Processes])
@pytest.mark.parametrize("error", [BadInput("x"), KeyboardInterrupt(), ValueError()])
def test_open_work_error_parts_removed(
    context: ReleaseContext, tmp_path: Path, kind: type[Cluster], error: BaseException
):
    context = in_folder(context, tmp_path / "disk")
    with pytest.raises(type(error)):
        work(context, kind, error)
    assert list_parts(context) == []


@pytest.mark.parametrize(("kind", "left"), [(Cluster, ["part-0"]), (Processes, [])])
def test_open_work_trouble_parts_of_a_cluster_kept(
    context: ReleaseContext, kind: type[Cluster], left: list[str]
):
    with pytest.raises(MachineTrouble):
        work(context, kind, MachineTrouble("x"))
    assert list_parts(context) == left
    with pytest.raises(MachineTrouble):
        work(context, kind, MachineTrouble("x"))
    assert list_parts(context) == ["part-0", "part-1"][: 2 * len(left)]
    work(context, Processes)  # continues without the cluster
    assert list_parts(context) == []


@pytest.mark.parametrize("error", [None, BadInput("x")])
def test_open_work_other_folder_parts_in_both_removed(
    context: ReleaseContext, tmp_path: Path, error: BaseException | None
):
    with pytest.raises(MachineTrouble):
        work(in_folder(context, tmp_path / "disk_a"), Cluster, MachineTrouble("x"))
    with pytest.raises(MachineTrouble):
        work(in_folder(context, tmp_path / "disk_b"), Cluster, MachineTrouble("x"))
    assert list_parts(context) == ["part-0", "part-0"]
    if error is None:
        work(in_folder(context, tmp_path / "disk_b"), Cluster)
    else:
        with pytest.raises(BadInput):
            work(in_folder(context, tmp_path / "disk_b"), Cluster, error)
    assert list_parts(context) == []


def test_open_work_worker_became_blind_machine_trouble(context: ReleaseContext):
    """The folder was checked before the release began: it is not bad input, and parts stay."""
    with pytest.raises(MachineTrouble):
        work(context, Cluster, MachineTrouble("x"))
    with pytest.raises(MachineTrouble, match="does not see the folder"):
        work(context, BlindCluster)
    assert list_parts(context) == ["part-0"]


def test_check_engine_folder_checked_before_release(
    context: ReleaseContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    context = in_folder(context, tmp_path / "disk")
    use(monkeypatch, Cluster)
    check_engine(context)
    use(monkeypatch, BlindCluster)
    with pytest.raises(BadInput, match="does not see the folder"):
        check_engine(context)
    assert list((tmp_path / "disk").iterdir()) == []
    assert list((Path(context.home) / "private" / "work").iterdir()) == []


def test_open_engine_settings_wrong_by_now_machine_trouble(
    context: ReleaseContext, monkeypatch: pytest.MonkeyPatch
):
    class Refusing(Cluster):
        def __enter__(self):
            raise BadInput("Worker 'x' has another numpy: 1, here 2.")

    use(monkeypatch, Refusing)
    with pytest.raises(MachineTrouble, match="another numpy"), open_engine(context):
        pass


def test_open_engine_bad_input_of_a_step_stays_bad_input(
    context: ReleaseContext, monkeypatch: pytest.MonkeyPatch
):
    def refuse(part: int) -> None:
        raise BadInput("The column is empty.")

    use(monkeypatch, Cluster)
    with pytest.raises(BadInput), open_engine(context) as engine:
        list(engine.run(refuse, [1]))


def test_open_engine_parts_done_shown(context: ReleaseContext, monkeypatch: pytest.MonkeyPatch):
    """On the page of the run in Prefect, on the console, and in the log."""
    shown, events = [], []
    monkeypatch.setattr(ProgressBar, "show", lambda bar, share: shown.append((bar.key, share)))
    monkeypatch.setattr("tasks.progress.LISTENERS", [events.append])
    settings = replace(context.engine, kind="local", address="", workers=2, part_blocks=1)
    with open_engine(replace(context, engine=settings)) as engine:
        assert list(engine.run(abs, [-1, -2, -3, -4])) == [1, 2, 3, 4]
    assert shown == [("table-parts", share) for share in (0.25, 0.5, 0.75, 1.0)]
    assert [(each.text, each.share) for each in events] == [
        (f"part {done} of 4", done / 4) for done in (1, 2, 3, 4)
    ]


def test_begin_release_dead_runs_of_other_datasets_swept(context: ReleaseContext, tmp_path: Path):
    home = Home(Path(context.home))
    disk = str(tmp_path / "disk")
    folders = {
        name: home.make_work(name, disk)
        for name in ("wine-0001", "wine-0002", "beer-0007", "wine-0003-columns")
    }
    for folder in folders.values():
        (folder / "part").touch()
    with hold(home.dataset_lock("beer"), holder="a release", limit=1.0, say=print):
        begin_release.fn(context)
    left = {name for name, folder in folders.items() if folder.exists()}
    # A release of beer is at work; a report that asks for columns holds no lock.
    assert left == {"beer-0007", "wine-0003-columns"}
    begin_release.fn(context)
    assert not folders["beer-0007"].exists()
