import sys,time
from pathlib import Path
def main(args):
    from flows.commands import read_file
    from flows.progress import shown_progress
    from tasks import ingest, sanitize, audit, gate, publish
    from warehouse.home import Home
    from tasks.cards import show_in_prefect
    publish.show_in_prefect = lambda *a: None
    with shown_progress():
        _, plan = read_file(Path(args[-1]))
        Home(Path(plan.home)).create()
        rid = ingest.begin.fn(plan)
        ingest.load_raw.fn(plan, rid); ingest.validate.fn(plan, rid)
        sanitize.make_draws.fn(plan, rid)
        audit.attack_shadows.fn(plan, rid)
        gate.judge.fn(plan, rid)
        publish.leave.fn(plan, rid, False)
        publish.tell.fn(plan, rid)
