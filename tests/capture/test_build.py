"""Building native parts: the cache, its key, two at once, and everything that can be missing."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from etmem.capture import build, executorch
from etmem.capture.build import Recipe
from etmem.model.errors import BuildError


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ETMEM_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("CXX", raising=False)
    return tmp_path / "cache"


@pytest.fixture
def recipe(tmp_path):
    folder = tmp_path / "sources"
    folder.mkdir()
    (folder / "part.cpp").write_text('#include "part.h"\nint main() { return value; }\n')
    (folder / "part.h").write_text("constexpr int value = 3;\n")
    return Recipe("part", folder, (), ("-O0",))


def run(path: Path) -> int:
    return subprocess.run([path], check=False).returncode


def test_it_is_built_once(cache, recipe):
    told: list[str] = []
    first = build.build(recipe, told.append)
    second = build.build(recipe, told.append)
    assert first == second
    assert run(first) == 3
    assert told == ["building part, once for this ExecuTorch"]
    assert cache in first.parents


def test_another_header_makes_another_result(cache, recipe):
    first = build.build(recipe)
    (recipe.folder / "part.h").write_text("constexpr int value = 4;\n")
    second = build.build(recipe)
    assert (run(first), run(second)) == (3, 4)


@pytest.mark.parametrize(
    "change",
    [{"flags": ("-O1",)}, {"link": ("-s",)}, {"depends": ("another library",)}],
    ids=lambda change: next(iter(change)),
)
def test_all_that_it_depends_on_is_in_the_key(cache, recipe, change):
    other = Recipe(**{**vars(recipe), **change})
    assert build.build(other) != build.build(recipe)


def test_another_compiler_makes_another_result(cache, recipe, monkeypatch):
    first = build.build(recipe)
    monkeypatch.setenv("CXX", "g++ -DOTHER")
    assert build.build(recipe) != first


def test_two_processes_at_once(cache, recipe, tmp_path):
    script = tmp_path / "two.py"
    script.write_text(
        "import sys, pathlib\n"
        "from etmem.capture import build\n"
        f"folder = pathlib.Path({str(recipe.folder)!r})\n"
        "print(build.build(build.Recipe('part', folder, (), ('-O0',))))\n"
    )
    running = [subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True) for _ in range(4)]
    paths = {process.communicate(timeout=60)[0] for process in running}
    assert len(paths) == 1
    assert run(Path(paths.pop().strip())) == 3
    assert [entry.name for entry in cache.iterdir() if entry.is_dir()] == [build.build(recipe).parent.name]


def test_a_lock_left_behind_holds_nobody_up(cache, recipe):
    result = build.build(recipe)
    assert result.parent.with_suffix(".lock").exists()
    (recipe.folder / "part.h").write_text("constexpr int value = 5;\n")
    before = time.monotonic()
    assert run(build.build(recipe)) == 5
    assert time.monotonic() - before < 30


def test_a_failed_build_keeps_its_log(cache, recipe):
    (recipe.folder / "part.cpp").write_text("int main() { return no_such_name; }\n")
    with pytest.raises(BuildError, match=r"part could not be compiled: .*no_such_name") as raised:
        build.build(recipe)
    log = Path(raised.value.hint.removeprefix("The compiler's output is in ").removesuffix("."))
    assert "no_such_name" in log.read_text()
    assert not [entry for entry in cache.iterdir() if entry.is_dir()]


def test_no_compiler(cache, recipe, monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(BuildError, match=r"no C\+\+ compiler was found") as raised:
        build.build(recipe)
    assert "CXX" in raised.value.hint


def test_a_cache_that_cannot_be_made(recipe, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ETMEM_CACHE", str(tmp_path / "file/cache"))
    with pytest.raises(BuildError, match=r"cannot build in .*Not a directory") as raised:
        build.build(recipe)
    assert "ETMEM_CACHE" in raised.value.hint


def test_a_full_disk(cache, recipe, tmp_path, monkeypatch):
    compiler = tmp_path / "full"
    compiler.write_text("#!/bin/sh\necho 'ld: final link failed: No space left on device' >&2\nexit 1\n")
    compiler.chmod(compiler.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("CXX", str(compiler))
    with pytest.raises(BuildError, match="no space left in"):
        build.build(recipe)


def test_no_sources(cache, recipe):
    (recipe.folder / "part.cpp").unlink()
    with pytest.raises(BuildError, match="holds no sources"):
        build.build(recipe)


def test_the_compiler_runs_without_the_agent(cache, recipe, tmp_path, monkeypatch):
    compiler = tmp_path / "shows"
    compiler.write_text("#!/bin/sh\nenv >&2\nexit 1\n")
    compiler.chmod(compiler.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("CXX", str(compiler))
    monkeypatch.setenv("ETMEM_TRACE", "/trace")
    with pytest.raises(BuildError):
        build.build(recipe)
    (log,) = cache.glob("*.log")
    assert "PATH=" in log.read_text()
    assert "ETMEM_TRACE" not in log.read_text()
    assert "LD_PRELOAD" not in log.read_text()


def test_the_agent_depends_on_libc_alone():
    text = subprocess.run(["readelf", "-dW", build.agent()], capture_output=True, text=True, check=True).stdout
    needed = {line.split("[")[1].rstrip("]") for line in text.splitlines() if "(NEEDED)" in line}
    assert needed <= {"libc.so.6", "libdl.so.2", "libpthread.so.0", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}


def test_hooks_for_the_wheel():
    library = executorch.find().runtime
    assert library is not None
    done = subprocess.run(
        [sys.executable, "-m", "etmem.capture.hooks_builder", library], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert Path(done.stdout.strip()) == build.hooks(library)


def test_hooks_that_cannot_be_built_say_why_in_one_line(tmp_path):
    library = tmp_path / "libexecutorch.so"
    library.write_bytes(b"")
    done = subprocess.run(
        [sys.executable, "-m", "etmem.capture.hooks_builder", library], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert "headers" in done.stderr


def test_cached_hooks_are_found_without_heavy_imports():
    library = executorch.find().runtime
    assert library is not None
    build.hooks(library)
    code = (
        "import sys; from etmem.capture import hooks_builder\n"
        f"hooks_builder.main([{str(library)!r}]); print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ)
    loaded = set(done.stdout.splitlines()[1].split())
    assert loaded.isdisjoint({"numpy", "torch", "executorch", "elftools", "click"})
