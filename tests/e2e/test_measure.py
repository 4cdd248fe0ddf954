import time, resource
from tests.e2e.tables import Small
from tests.forkserver import run_cli
E="tests.e2e.entries:"
def test_one(small, tmp_path):
    small("warm").write().run("check")
    for point in ["run begun", "candidate drawn"]:
        s = small("kill").write()
        t=time.monotonic(); res=s.run(point, "release", entry=E+"killed"); print(point, round(time.monotonic()-t,2), res)
