"""What a capture needs and uses, checked one by one on this machine."""

from __future__ import annotations

import os
import platform
import resource
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path

from etmem.capture import arch as arch_
from etmem.capture import build, cpus, cross, emulator, executorch, launch, packages, wheel
from etmem.capture.arch import Arch
from etmem.capture.executorch import ExecuTorch
from etmem.capture.options import Progress, silent
from etmem.delegates import Evidence, descriptions
from etmem.model.errors import CaptureError, EtmemError, reason

MIB = 1024 * 1024
_SOFT_DIRTY_AND_PEAK = "5"
"""What resets VmHWM when it is written to clear_refs; it changes nothing else."""


TESTED = ("1.0.1", "1.1.0", "1.2.0", "1.3.1", "1.4.1", "1.5.1")
"""Releases of ExecuTorch that etmem's own tests run."""


class State(StrEnum):
    OK = "ok"
    LESS = "less"
    """Something is not available; what then is missing stands in the hint."""
    MISSING = "missing"
    """Neither profile nor run can work without it."""


@dataclass(frozen=True)
class Check:
    name: str
    state: State
    detail: str
    hint: str = ""


def checks(prefix: Path | None = None, progress: Progress = silent) -> tuple[Check, ...]:
    """All checks, in the order in which one depends on the other. Nothing is changed but etmem's build cache."""
    return tuple(_checks(prefix, progress))


def _checks(prefix: Path | None, progress: Progress) -> Iterator[Check]:
    yield _python()
    yield _platform()
    yield _compiler()
    agent, path = _built("agent", lambda: build.agent(progress), "profile and run need it")
    yield agent
    if path is not None:
        yield _preload(path)
    found, check = _executorch(prefix)
    yield check
    if found is not None:
        yield _tested(found)
        yield from _for_executorch(found, progress)
        yield _xnnpack(found)
        yield _openvino(found)
        for arch in arch_.ALL:
            yield _other_cpu(arch, found)
    yield _descriptions()
    yield _high_water()
    yield _residency()
    yield _memlock()


def _python() -> Check:
    return Check("python", State.OK, f"{platform.python_version()} at {sys.executable}")


def _platform() -> Check:
    detail = f"{platform.system()} {platform.release()} {platform.machine()}"
    if platform.system() != "Linux":
        return Check("platform", State.MISSING, detail, "profile and run need Linux; report and explain work here")
    return Check("platform", State.OK, detail)


def _compiler() -> Check:
    chosen = shlex.split(os.environ.get("CXX", ""))[:1]
    path = next(filter(None, map(shutil.which, [*chosen, "g++", "clang++", "c++"])), None)
    if path is not None:
        return Check("compiler", State.OK, path)
    hint = "what is not built yet cannot be: install g++ or clang++, or name one in CXX"
    return Check("compiler", State.LESS, "none was found", hint)


def _built(name: str, make: Callable[[], Path], without: str) -> tuple[Check, Path | None]:
    try:
        path = make()
    except EtmemError as error:
        return Check(name, State.MISSING, error.message, error.hint or without), None
    return Check(name, State.OK, str(path)), path


def _preload(agent: Path) -> Check:
    """A process that allocates, recorded: LD_PRELOAD can be refused by the system or by the binary."""
    with tempfile.TemporaryDirectory(prefix="etmem-doctor-") as folder:
        trace, log = Path(folder, "trace"), Path(folder, "log")
        try:
            launch.run(launch.Launch((sys.executable, "-S", "-c", "pass"), agent, trace, log=log))
        except CaptureError as error:
            return Check("preload", State.MISSING, error.message, error.hint)
        size = trace.stat().st_size if trace.exists() else 0
        if not size:
            said = log.read_text(errors="replace").strip().splitlines() if log.exists() else []
            hint = "LD_PRELOAD is ignored by setuid programs and refused by some sandboxes"
            return Check("preload", State.MISSING, said[-1] if said else "no trace was written", hint)
    return Check("preload", State.OK, f"recorded a process of this Python, {size:,} B")


def _executorch(prefix: Path | None) -> tuple[ExecuTorch | None, Check]:
    try:
        found = executorch.find(prefix)
    except EtmemError as error:
        return None, Check("executorch", State.MISSING, error.message, error.hint)
    detail = f"{found.version} at {found.prefix}"
    if found.native:
        return found, Check("executorch", State.OK, f"{detail}, with its C++ SDK")
    hint = "no native runner: profile uses the Python runtime; executorch 1.5 and newer come with the C++ SDK"
    return found, Check("executorch", State.LESS, f"{detail}, without a C++ SDK", hint)


def _tested(found: ExecuTorch) -> Check:
    """Whether this release is one of those that the tests run: another one's calls may have other signatures."""
    release = found.version.partition("+")[0]
    if release in TESTED:
        return Check("version", State.OK, f"{release} is tested")
    hint = "hooks are built against its own headers: an issue of the report says where a run did not reach them"
    return Check("version", State.LESS, f"{release} is untested; {' and '.join(TESTED)} are tested", hint)


def _for_executorch(found: ExecuTorch, progress: Progress) -> Iterator[Check]:
    runtime = found.runtime
    if runtime is None:
        yield Check("hooks", State.MISSING, "no shared runtime library", "build it with -DEXECUTORCH_BUILD_SHARED=ON")
        return
    yield _built("hooks", lambda: build.hooks(runtime, progress), "phases and owners need them")[0]
    if found.native:
        yield _built("runner", lambda: build.runner(found, progress), "--runtime python works without it")[0]
    if executorch.has_event_tracer(runtime):
        yield Check("event tracer", State.OK, "compiled in: figures can be given to instructions")
    else:
        hint = "instructions are not told; owners, categories and peaks are"
        yield Check("event tracer", State.LESS, "not compiled into this ExecuTorch", hint)


def _xnnpack(found: ExecuTorch) -> Check:
    if "executorch_backend_xnnpack" in found.components():
        return Check("XNNPACK", State.OK, "linked into the native runner")
    if not found.native:
        return Check("XNNPACK", State.OK, "in the Python runtime, if it was built with it")
    return Check("XNNPACK", State.LESS, "not in this ExecuTorch", "programs with XnnpackBackend need --library")


def _openvino(found: ExecuTorch) -> Check:
    name = "OpenVINO"
    if "executorch_backend_openvino" not in found.components():
        return Check(name, State.LESS, "not in this ExecuTorch", "only programs with OpenvinoBackend need it")
    path = os.environ.get("OPENVINO_LIB_PATH")
    if path:
        if Path(path).exists():
            return Check(name, State.OK, f"OPENVINO_LIB_PATH={path}")
        return Check(name, State.LESS, f"OPENVINO_LIB_PATH={path} does not exist", "set it to libopenvino_c.so")
    if find_spec("openvino") is not None:
        return Check(name, State.OK, "the openvino package of this Python; profile finds its library")
    hint = 'pip install "openvino>=2025.1,<2026", or set OPENVINO_LIB_PATH to libopenvino_c.so'
    return Check(name, State.LESS, "its library is not installed", hint)


def _descriptions() -> Check:
    """What is known of which delegate; an error where a package's or the environment's cannot be read."""
    name = "delegates"
    try:
        known = descriptions()
    except EtmemError as error:
        return Check(name, State.LESS, error.message, error.hint)
    by = {how: [backend for backend, found in known.items() if found.tested.by is how] for how in Evidence}
    return Check(name, State.OK, "; ".join(f"by {how}: {', '.join(sorted(names))}" for how, names in by.items()))


def _other_cpu(arch: Arch, found: ExecuTorch) -> Check:
    """What ``--cpu`` needs for a model of this instruction set."""
    name = f"{arch.shown} CPUs"
    lacks = cross.missing(arch)
    if lacks:
        fetched = "; etmem profile --cpu fetches them into its cache" if packages.available() else ""
        return Check(name, State.LESS, f"missing: {', '.join(lacks)}{fetched}", cross.install_hint(arch))
    program = cross.find_emulator(arch)
    assert program is not None
    try:
        numbers = emulator.version(program)
    except CaptureError as error:
        return Check(name, State.LESS, error.message, error.hint)
    models = ", ".join(cpu.name for cpu in cpus.CPUS if cpu.arch == arch and cpu.since <= numbers[:2])
    detail = f"{program} {'.'.join(map(str, numbers))}: {models or 'none'}"
    if arch != arch_.host() and not wheel.is_unpacked(found.version, arch, build.cache()):
        detail += "; the wheel is downloaded at the first use"
    return Check(name, State.OK, detail)


def _high_water() -> Check:
    try:
        Path("/proc/self/clear_refs").write_text(_SOFT_DIRTY_AND_PEAK)
    except OSError as error:
        hint = "RSS is known at the phases' ends only; counted peaks are exact all the same"
        return Check("high water", State.LESS, f"/proc/self/clear_refs: {reason(error)}", hint)
    return Check("high water", State.OK, "/proc/self/clear_refs resets the kernel's peak of RSS")


def _residency() -> Check:
    version = tuple(int(part) for part in platform.release().split("-")[0].split(".")[:2] if part.isdigit())
    try:
        with Path("/proc/self/pagemap").open("rb") as pagemap:
            readable = len(pagemap.read(8)) == 8
    except OSError:
        readable = False
    if not readable:
        return Check("residency", State.LESS, "/proc/self/pagemap cannot be read", "there is no balance of RSS")
    return Check("residency", State.OK, "PAGEMAP_SCAN" if version >= (6, 7) else "/proc/self/pagemap")


def _memlock() -> Check:
    limit = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    if limit == resource.RLIM_INFINITY:
        return Check("memlock", State.OK, "unlimited")
    hint = "the Python runtime and --load-mode mlock lock the program's pages as far as that: ulimit -l"
    return Check("memlock", State.LESS, f"{limit / MIB:.1f} MiB", hint)
