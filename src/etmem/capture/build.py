"""Native parts compiled on first use and cached by content.

The key of a result is a hash of everything it depends on: sources, flags, compiler, and the ExecuTorch
library it is for. So a cached file is never stale, and two processes that build the same thing at once
make the same file; the lock only saves the second one the work.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import shlex
import shutil
import subprocess
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from etmem.capture import elf, executorch
from etmem.model.errors import BuildError, reason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from etmem.capture.executorch import ExecuTorch

_PACKAGE = Path(__file__).resolve().parent.parent
_CHECKOUT = _PACKAGE.parent.parent / "native"
_SHIPPED = _PACKAGE / "_native"
_LOCK_SECONDS = 120
_COMMON = ("-std=c++17", "-O2", "-g1", "-w")


@dataclass(frozen=True)
class Toolchain:
    """What builds for another instruction set, and the libraries that its results run with."""

    compiler: tuple[str, ...]
    libraries: Path
    loader: Path
    """The dynamic linker: results name it by its place here, for nothing else tells an emulator where it is."""


@dataclass(frozen=True)
class Recipe:
    """One native part: ``compiler flags sources -o name link``."""

    name: str
    folder: Path
    """Where the sources are; its files and those of ``includes`` enter the key."""
    includes: tuple[Path, ...]
    flags: tuple[str, ...]
    link: tuple[str, ...] = ()
    depends: tuple[str, ...] = ()
    """What else the result depends on, as text."""
    compiler: tuple[str, ...] = ()
    """Empty: this machine's."""

    def sources(self) -> tuple[Path, ...]:
        return tuple(sorted(path for path in self.folder.iterdir() if path.suffix in (".cpp", ".S")))

    def inputs(self) -> Iterator[Path]:
        for folder in (self.folder, *self.includes):
            yield from sorted(path for path in folder.rglob("*") if path.suffix in (".cpp", ".S", ".h", ".hpp", ".def"))


def agent(progress: Callable[[str], None] | None = None, toolchain: Toolchain | None = None) -> Path:
    """libetmem.so: built from a source checkout, else the one that was installed, else built from what was."""
    installed = _SHIPPED / "libetmem.so"
    native = _native()
    if native != _CHECKOUT and installed.is_file() and toolchain is None:
        return installed
    return build(_for(_agent_recipe(native), toolchain), progress)


def runner(
    found: ExecuTorch, progress: Callable[[str], None] | None = None, toolchain: Toolchain | None = None
) -> Path:
    """etmem-runner for an ExecuTorch with a C++ SDK. Raises ``BuildError``."""
    if not found.native:
        raise BuildError(
            f"ExecuTorch {found.version} at {found.prefix} has no libexecutorch.so or no headers",
            "executorch 1.5 and newer come with both; older ones are profiled with --runtime python.",
        )
    recipe = _runner_recipe(_native(), found)
    if toolchain is not None:
        recipe = replace(recipe, link=(*recipe.link, f"-Wl,--dynamic-linker={toolchain.loader}"))
    return build(_for(recipe, toolchain), progress)


def hooks(library: Path, progress: Callable[[str], None] | None = None, toolchain: Toolchain | None = None) -> Path:
    """etmem-hooks.so for the ExecuTorch whose runtime is in ``library``. Raises ``BuildError``."""
    found = executorch.of_library(library)
    prefix = os.environ.get("ETMEM_EXECUTORCH")
    if found.include is None and prefix:
        found = replace(found, include=executorch.find(Path(prefix)).include)
    if found.include is None or (not found.typed and executorch.has_event_tracer(library)):
        raise BuildError(
            f"the headers of the ExecuTorch in {library} are not installed",
            "Give the installation that it was built from with --executorch PREFIX.",
        )
    return build(_for(_hooks_recipe(_native(), found, library), toolchain), progress)


def generated(
    name: str, source: str, progress: Callable[[str], None] | None = None, toolchain: Toolchain | None = None
) -> Path:
    """A shared library of one source text that may use ``etmem/etmem.h``. Raises ``BuildError``."""
    folder = cache() / "generated" / hashlib.sha256(source.encode()).hexdigest()[:16]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "source.cpp").write_text(source)
    except OSError as error:
        raise _cache_error(error, folder) from error
    flags = ("-fPIC", "-shared", "-fno-exceptions", "-fvisibility=hidden")
    return build(_for(Recipe(name, folder, (_native() / "include",), flags, ("-ldl",)), toolchain), progress)


def build(recipe: Recipe, progress: Callable[[str], None] | None = None) -> Path:
    """The recipe's result, from the cache or made now. Raises ``BuildError``."""
    if not recipe.sources():
        raise BuildError(f"{recipe.folder} holds no sources", "Install etmem again.")
    compiler = recipe.compiler or _compiler()
    folder = cache() / _key(recipe, compiler)
    result = folder / recipe.name
    if result.is_file():
        return result
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _only_one(folder.with_suffix(".lock")):
            if not result.is_file():
                if progress is not None:
                    progress(f"building {recipe.name}, once for this ExecuTorch")
                _make(recipe, compiler, folder)
    except OSError as error:
        raise _cache_error(error, folder.parent) from error
    return result


def _for(recipe: Recipe, toolchain: Toolchain | None) -> Recipe:
    return recipe if toolchain is None else replace(recipe, compiler=toolchain.compiler)


def _agent_recipe(native: Path) -> Recipe:
    return Recipe(
        name="libetmem.so",
        folder=native / "agent",
        includes=(native / "include",),
        flags=(
            "-fPIC",
            "-shared",
            "-fno-exceptions",
            "-fno-rtti",
            "-fno-threadsafe-statics",
            "-fvisibility=hidden",
            "-ftls-model=initial-exec",
            # The driver would add libstdc++, which must not reach the profiled process. (-nostdlib++ says it
            # directly, but GCC 12 does not have it.)
            "-nodefaultlibs",
        ),
        link=(
            "-Wl,--exclude-libs,ALL",
            # Its constructor runs before those of all other libraries: what they allocate is then seen.
            "-Wl,-z,initfirst",
            "-Wl,-Bsymbolic-functions",
            "-Wl,-z,now",
            "-Wl,-z,defs",
            *("-lgcc_eh", "-lgcc", "-lpthread", "-ldl", "-lc"),
        ),
    )


def _runner_recipe(native: Path, found: ExecuTorch) -> Recipe:
    assert found.libraries is not None
    assert found.runtime is not None
    components = found.components()
    return Recipe(
        name="etmem-runner",
        folder=native / "runner",
        includes=(native / "include",),
        flags=(*_executorch_flags(found), *(("-DETMEM_ETDUMP",) if "executorch_etdump" in components else ())),
        link=(
            f"-L{found.libraries}",
            "-lexecutorch",
            # They only register operators and backends: nothing refers to them.
            "-Wl,--no-as-needed",
            *(f"-l{name}" for name in components),
            f"-Wl,-rpath,{found.libraries}",
            "-ldl",
        ),
        depends=(elf.identity(found.runtime),),
    )


def _hooks_recipe(native: Path, found: ExecuTorch, library: Path) -> Recipe:
    return Recipe(
        name="etmem-hooks.so",
        folder=native / "executorch" / ("" if found.typed else "untyped"),
        includes=(native / "include",),
        flags=(
            "-fPIC",
            "-shared",
            "-fno-exceptions",
            "-frtti",
            "-fno-threadsafe-statics",
            "-fvisibility=hidden",
            f'-DETMEM_BUILD_ID="{_told_by(library)}"',
            *_executorch_flags(found),
        ),
        # Exactly the library that defines this runtime: another one would register all operators a second time.
        # Needed also where all that is used lies in a library behind it: 1.2's core is in its QNN backend's.
        link=("-Wl,--no-as-needed", str(library.resolve()), "-Wl,--as-needed", "-ldl"),
        depends=(elf.identity(library),),
    )


def _told_by(library: Path) -> str:
    """How the agent tells that the runtime it met is this one (native/agent/stubs.cpp says the same)."""
    found = elf.read(library)
    return found.build_id if found is not None and found.build_id else f"path:{library.resolve()}"


def _executorch_flags(found: ExecuTorch) -> tuple[str, ...]:
    assert found.include is not None
    assert found.runtime is not None
    portable = found.include / "executorch/runtime/core/portable_type/c10"
    tracer = ("-DET_EVENT_TRACER_ENABLED",) if executorch.has_event_tracer(found.runtime) else ()
    return (f"-I{found.include}", f"-I{portable}", "-DC10_USING_CUSTOM_GENERATED_MACROS", *tracer)


def _native() -> Path:
    """Where the sources are: beside the package in a checkout, inside it when installed."""
    for folder in (_CHECKOUT, _SHIPPED / "src"):
        if (folder / "include/etmem/etmem.h").is_file():
            return folder
    raise BuildError("etmem's native sources are missing", "Install etmem again.")


def include_folder() -> Path:
    """Where etmem's own headers are, for ``-I``."""
    return _native() / "include"


def cache() -> Path:
    """Where everything is kept that is built or fetched once."""
    home = os.environ.get("ETMEM_CACHE")
    if home:
        return Path(home)
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "etmem"


def _compiler() -> tuple[str, ...]:
    """The compiler's command, its path first."""
    candidates = [shlex.split(os.environ.get("CXX", "")), ["g++"], ["clang++"], ["c++"]]
    for command in candidates:
        path = shutil.which(command[0]) if command else None
        if path is not None:
            return (path, *command[1:])
    raise BuildError("no C++ compiler was found", "Install g++ or clang++, or name one in CXX.")


def _key(recipe: Recipe, compiler: tuple[str, ...]) -> str:
    """Of everything that the result depends on. The compiler is told by its file: asking it takes longer."""
    path = Path(compiler[0]).resolve()
    stat = path.stat()
    parts = [recipe.name, *compiler, str(path), str(stat.st_size), str(stat.st_mtime_ns)]
    parts += [*_COMMON, *recipe.flags, *recipe.link, *recipe.depends]
    digest = hashlib.sha256("\0".join(parts).encode())
    for source in recipe.inputs():
        digest.update(f"\0{source.name}\0".encode())
        digest.update(source.read_bytes())
    return digest.hexdigest()[:32]


def _command(recipe: Recipe, compiler: tuple[str, ...], output: Path) -> list[str]:
    includes = [f"-I{folder}" for folder in (recipe.folder, *recipe.includes)]
    sources = [str(source) for source in recipe.sources()]
    return [*compiler, *_COMMON, *recipe.flags, *includes, *sources, "-o", str(output), *recipe.link]


def _make(recipe: Recipe, compiler: tuple[str, ...], folder: Path) -> None:
    """Build beside the final place and rename: nobody ever sees half a result."""
    scratch = Path(tempfile.mkdtemp(prefix=f"{folder.name[:8]}-", dir=folder.parent))
    try:
        command = _command(recipe, compiler, scratch / recipe.name)
        log = scratch / "build.log"
        with log.open("w") as output:
            output.write(shlex.join(command) + "\n\n")
            output.flush()
            status = subprocess.run(command, stdout=output, stderr=output, env=_clean_environment(), check=False)
        if status.returncode != 0:
            raise _failed(recipe, log, folder)
        _publish(scratch, folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _publish(scratch: Path, folder: Path) -> None:
    try:
        scratch.rename(folder)
    except OSError as error:
        # Another process, which did not wait for the lock, was first with the same thing.
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise


def _failed(recipe: Recipe, log: Path, folder: Path) -> BuildError:
    text = log.read_text(errors="replace")
    kept = folder.with_suffix(".log")
    shutil.copyfile(log, kept)
    if "No space left on device" in text:
        return BuildError(f"no space left in {folder.parent}", "Free some, or name another folder in ETMEM_CACHE.")
    reason = next((line.strip() for line in text.splitlines() if "error" in line.lower()), "see the log")
    return BuildError(f"{recipe.name} could not be compiled: {reason}", f"The compiler's output is in {kept}.")


def _cache_error(error: OSError, folder: Path) -> BuildError:
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    message = f"no space left in {folder}" if full else f"cannot build in {folder}: {reason(error)}"
    return BuildError(message, "Name another folder in ETMEM_CACHE.")


def _clean_environment() -> dict[str, str]:
    """The compiler must not run under the agent, nor speak another language than its error is searched in."""
    dropped = ("LD_PRELOAD", "LANG", "LANGUAGE")
    kept = {k: v for k, v in os.environ.items() if k not in dropped and not k.startswith("ETMEM_")}
    return {**kept, "LC_ALL": "C"}


@contextmanager
def _only_one(lock: Path) -> Iterator[None]:
    """Waits while another process builds the same, but not for ever: the lock only saves work."""
    with lock.open("w") as file:
        deadline = time.monotonic() + _LOCK_SECONDS
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError as error:
                if error.errno not in (errno.EWOULDBLOCK, errno.EINTR) or time.monotonic() > deadline:
                    break
                time.sleep(0.05)
        yield
