import time, resource
from tests.e2e.tables import Small
from tests.forkserver import run_cli
E="tests.e2e.entries:"
def test_one(small, tmp_path):
    r = small().write()
    def go(*a, **k):
        t=time.monotonic(); res=r.run(*a, **k); print(a, k, round(time.monotonic()-t,2), res); return res
    go("/tmp/points", "release", entry=E+"noted")
    print(open("/tmp/points").read())
    for point in ["run begun", "candidate drawn", "attacks played", "folder complete"]:
        s = small("kill").write()
        t=time.monotonic(); res=s.run(point, "release", entry=E+"killed"); print(point, round(time.monotonic()-t,2), res)
    t=time.monotonic(); res=s.run("release"); print(round(time.monotonic()-t,2), res)
    import subprocess; print(subprocess.run(["find", str(tmp_path)], capture_output=True, text=True).stdout)
    assert 0
