"""``etmem profile``: run a program in a process of its own, recorded from its first to its last byte."""

from __future__ import annotations

import os
import platform
import sys
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from etmem.capture import build, cpus, cross, etdump, executorch, machine, plan, portable, session
from etmem.capture.dry import answers, dry_issues
from etmem.capture.failures import failure, parse_error
from etmem.capture.job import Job, prepare
from etmem.capture.launch import PROGRESS
from etmem.capture.options import LoadMode, Runtime
from etmem.capture.session import Session
from etmem.model.errors import BuildError, UsageError
from etmem.model.summary import Issue, Target
from etmem.model.words import IssueCode, Severity

if TYPE_CHECKING:
    from etmem.capture.build import Toolchain
    from etmem.capture.cross import Cross
    from etmem.capture.executorch import ExecuTorch
    from etmem.capture.failures import RunnerError
    from etmem.capture.options import Capture, ProfileOptions, Progress

TRACE_SUFFIX = ".etmem"


def profile(options: ProfileOptions) -> Capture:
    """Run the program as the options say, and keep its trace.

    Raises ``UsageError``, ``ProgramError``, ``InputError`` for what cannot be run, ``BuildError`` and
    ``CaptureError`` where nothing could be recorded. A program that fails while it runs is an issue of the
    capture: its trace holds what it allocated until then.
    """
    cpu = cpus.choose(options.arch, options.cpu)
    if options.dry is None:
        options = replace(options, dry=cpu is not None)
    with TemporaryDirectory(prefix="etmem-") as folder:
        scratch = Path(folder)
        job = prepare(options, scratch)
        if cpu is None:
            found = executorch.find(options.executorch)
            runtime, issues = _runtime(options, job, found)
            crossed = None
        else:
            portable.check(options, job, cpu)
            crossed = cross.prepare(cpu, options.executorch, options.progress)
            found, runtime, issues = crossed.executorch, Runtime.NATIVE, []
        if runtime is Runtime.PYTHON:
            job = _for_python(job, found)
        etdump.check(options, emulated=cpu is not None)
        text = scratch / "plan"
        text.write_bytes(os.fsencode(plan.encode(job.plan)))
        capture = _record(options, job, _session(options, job, found, runtime, issues, text, crossed))
        if options.etdump is not None and capture.exit_status == 0:
            etdump.record(options, job, _runner(options, job, found, runtime), scratch)
        return capture


def _record(options: ProfileOptions, job: Job, prepared: Session) -> Capture:
    errors: list[RunnerError] = []
    steps = _Steps(options.progress, job.plan)

    def on_line(line: str) -> None:
        error = parse_error(line)
        if error is not None:
            errors.append(error)
        else:
            steps(line)

    ended = session.start(prepared, on_line)
    log = ended.log.read_text(errors="replace") if ended.log else ""
    issue = failure(ended.status, errors, log)
    return session.finish(ended, (issue,) if issue else ())


def _session(
    options: ProfileOptions,
    job: Job,
    found: ExecuTorch,
    runtime: Runtime,
    issues: list[Issue],
    text: Path,
    crossed: Cross | None,
) -> Session:
    native = runtime is Runtime.NATIVE
    toolchain = crossed.toolchain if crossed else None
    hooks = None
    if found.runtime is not None:
        try:
            hooks = build.hooks(found.runtime, options.progress, toolchain)
        except BuildError as error:
            if native:
                raise
            issues.append(_no_hooks(error))
    return Session(
        command=(*_runner(options, job, found, runtime, toolchain), str(text), PROGRESS),
        shown_command=tuple(sys.argv),
        target=_target(options, job, found, runtime, crossed),
        agent=build.agent(options.progress, toolchain),
        output=options.output or Path(options.program.stem + TRACE_SUFFIX),
        programs=tuple(path.absolute() for path in (options.program, *options.data)),
        # The only program of the process, whose own path may be that of a bundle's content.
        notes={"program.1.path": str(options.program.absolute())},
        hooks=hooks,
        keep_rusage=options.keep_rusage,
        # A leak is told by its call stack, whoever allocates it.
        all_stacks=options.all_stacks or options.cycles > 1,
        executorch=options.executorch,
        extra=job.variables(os.environ),
        issues=(*issues, *(dry_issues(job.backends, job.operators, options.describe) if options.dry else ())),
        describe=options.describe,
        sources=options.sources,
        preload=answers(options.describe, options.progress, toolchain) if options.dry else None,
        emulator=crossed.emulator if crossed else None,
        progress=options.progress,
    )


def _runner(
    options: ProfileOptions, job: Job, found: ExecuTorch, runtime: Runtime, toolchain: Toolchain | None = None
) -> tuple[str, ...]:
    """The command that carries out a plan: its file comes behind, then where it tells its progress."""
    if runtime is Runtime.NATIVE:
        return (str(build.runner(found, options.progress, toolchain)),)
    modules = ",".join(job.python_modules)
    return (sys.executable, "-m", "etmem.capture.python_runner", f"--import={modules}")


def _target(options: ProfileOptions, job: Job, found: ExecuTorch, runtime: Runtime, crossed: Cross | None) -> Target:
    if crossed is None:
        arch, (cpu, isa) = platform.machine(), machine.cpu()
    else:
        model = crossed.emulator.cpu
        arch, cpu, isa = model.arch.name, model.name, model.isa
    return Target(
        arch=arch,
        cpu=cpu,
        isa=isa,
        pointer_bytes=machine.POINTER_BYTES,
        executorch=found.version,
        runtime=runtime.value,
        loader=job.plan.load_mode.value,
        iterations=options.iterations,
        dry=bool(options.dry),
        preset=options.preset.value,
        backend_options=tuple(str(option) for option in job.plan.options),
        threads=options.threads,
        inputs=job.inputs,
    )


def _runtime(options: ProfileOptions, job: Job, found: ExecuTorch) -> tuple[Runtime, list[Issue]]:
    """Which runtime can run the program, and an issue where it is not the one that was asked for."""
    if options.runtime is Runtime.PYTHON:
        return Runtime.PYTHON, []
    why = ""
    if not found.native:
        why = f"ExecuTorch {found.version} has no C++ libraries to run it with"
    elif job.python_only and not options.libraries:
        why = f"{', '.join(job.python_only)} can only be had in a process with libtorch"
    if not why or not found.wheel:
        return Runtime.NATIVE, []
    return Runtime.PYTHON, [
        Issue(
            IssueCode.PYTHON_FALLBACK,
            Severity.WARNING,
            f"ran in Python: {why}",
            "The interpreter and torch are in the process: RSS is hundreds of MiB higher, their heap is host's.",
            {"operators": list(job.python_only)},
        )
    ]


def _for_python(job: Job, found: ExecuTorch) -> Job:
    """The plan as the Python runtime can carry it out. Raises ``UsageError`` for what it cannot."""
    if not found.wheel:
        raise UsageError("--runtime python uses the ExecuTorch of this Python", "Leave --executorch out.")
    if job.plan.options:
        named = ", ".join(str(option) for option in job.plan.options)
        raise UsageError(
            f"the Python runtime takes no backend options ({named})", "Leave --backend-option and --preset out."
        )
    if job.plan.cycles > 1:
        raise UsageError("--cycles is an option of the native runtime", "Leave --runtime python out.")
    if job.plan.share_arenas:
        raise UsageError("--share-arenas is an option of the native runtime", "The Python one always shares them.")
    if len(job.plan.data) > 1:
        raise UsageError("the Python runtime takes one .ptd file")
    # It has two loaders: a buffer, and mmap with mlock where that is allowed.
    mode = LoadMode.BUFFER if job.plan.load_mode is LoadMode.BUFFER else LoadMode.MLOCK
    return replace(job, plan=replace(job.plan, load_mode=mode))


def _no_hooks(error: BuildError) -> Issue:
    return Issue(
        IssueCode.HOOKS_UNAVAILABLE,
        Severity.ERROR,
        f"owners are unknown: {error.message}",
        error.hint,
    )


class _Steps:
    """A runner's progress lines in the user's words."""

    def __init__(self, progress: Progress, steps: plan.RunnerPlan) -> None:
        self._progress = progress
        self._total = sum(run.iterations for run in steps.runs) * steps.cycles
        self._done = 0

    def __call__(self, line: str) -> None:
        step, _, rest = line.partition("\t")
        name = rest.partition("\t")[0]
        if step == "inference":
            self._done += 1
            self._progress(f"running {name}, {self._done} of {self._total}")
        elif step in ("program_load", "method_load"):
            self._progress(f"loading {Path(name).name}")
        elif step == "unload":
            self._progress(f"unloading {name}")
