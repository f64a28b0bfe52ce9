"""A plan of a large file: it is looked at, not read; and nothing of torch or ExecuTorch is needed."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import resource, sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "executorch", "pandas"):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Absent())
import etmem
found = etmem.plan(sys.argv[1])
found.text(full=True), found.to_json()
assert not {"torch", "executorch", "pandas"} & set(sys.modules)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def resident_kib(path) -> int:
    """The most that a process had resident that planned this file without torch."""
    done = subprocess.run([sys.executable, "-c", SCRIPT, str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return int(done.stdout)


def test_a_large_file_is_not_read(model):
    """GIVEN files of 0.2 and of 67 MB WHEN each is planned THEN the large one takes no 4 MiB more."""
    small, large = model("convs"), model("mlp")
    assert large.stat().st_size - small.stat().st_size > 60 << 20
    assert resident_kib(large) - resident_kib(small) < 4 << 10
