"""Finding ExecuTorch."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from etmem.capture import executorch
from etmem.model.errors import UsageError


def test_the_wheel_of_this_python():
    found = executorch.find()
    assert found.native
    assert found.wheel
    assert found.version.partition("+")[0] == version("executorch").partition("+")[0]
    assert {"executorch_backend_xnnpack", "executorch_kernels_optimized"} <= set(found.components())


def test_it_is_found_without_being_imported():
    code = "import sys; from etmem.capture import executorch; executorch.find(); print('executorch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def test_a_prefix():
    wheel = executorch.find()
    found = executorch.find(wheel.prefix)
    assert (found.runtime, found.include, found.version, found.wheel) == (
        wheel.runtime, wheel.include, wheel.version, False,
    )  # fmt: skip


def test_the_installation_of_a_library():
    wheel = executorch.find()
    assert wheel.runtime is not None
    found = executorch.of_library(wheel.runtime)
    assert (found.include, found.version, found.runtime) == (wheel.include, wheel.version, wheel.runtime)


def test_an_older_wheel_has_its_runtime_in_the_python_extension(tmp_path):
    library = tmp_path / "extension/pybindings/_portable_lib.cpython-311-x86_64-linux-gnu.so"
    library.parent.mkdir(parents=True)
    library.write_bytes(b"")
    (tmp_path / "include/executorch/runtime").mkdir(parents=True)
    (tmp_path / "version.py").write_text('__version__ = "1.4.1+cpu"\n')
    found = executorch.of_library(library)
    assert (found.version, found.runtime, found.native) == ("1.4.1+cpu", library, False)
    assert executorch.find(tmp_path).runtime == library


def test_a_static_build(tmp_path):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/libexecutorch.a").write_bytes(b"")
    with pytest.raises(UsageError, match="static ExecuTorch only") as raised:
        executorch.find(tmp_path)
    assert "EXECUTORCH_BUILD_SHARED" in raised.value.hint


@pytest.mark.parametrize("prefix", ["", "nowhere"])
def test_a_prefix_without_executorch(tmp_path, prefix):
    with pytest.raises(UsageError, match="no ExecuTorch under"):
        executorch.find(Path(tmp_path / prefix))
