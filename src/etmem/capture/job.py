"""A profile's options made into a plan for a runner: program, methods, inputs, backend options."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from etmem.capture.inputs import default_inputs, given_inputs
from etmem.capture.options import BackendOption, Preset
from etmem.capture.plan import RunnerPlan
from etmem.model.errors import InputError, UsageError
from etmem.program import Tensor, is_constant_method, read, read_data, require_plan
from etmem.program.file import FileKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from etmem.capture.arrays import GivenInputs
    from etmem.capture.inputs import Inputs
    from etmem.capture.options import ProfileOptions
    from etmem.model.summary import InputSpec
    from etmem.program import Program

_XNNPACK = "XnnpackBackend"
_OPENVINO = "OpenvinoBackend"
_PYTHON_ONLY = {"llama": "executorch.extension.llm.custom_ops.custom_ops"}
"""Operators whose only library needs libtorch, by namespace: the module that registers them."""
_PYTHON_EXTRA = {**_PYTHON_ONLY, "quantized_decomposed": "executorch.kernels.quantized"}

_PRESETS = {
    Preset.WHEEL: (),
    # The weight cache is compiled in by default there.
    Preset.ANDROID: (BackendOption(_XNNPACK, "weight_cache_enabled", True),),
    Preset.APPLE: (BackendOption(_XNNPACK, "weight_cache_enabled", True),),
}


@dataclass(frozen=True)
class Job:
    plan: RunnerPlan
    program: Program
    inputs: tuple[InputSpec, ...]

    @property
    def backends(self) -> frozenset[str]:
        """Of the delegates of the methods to run."""
        plans = [require_plan(self.program, method) for method in self.plan.methods]
        return frozenset(delegate.backend for plan in plans for delegate in plan.delegates)

    @property
    def python_only(self) -> tuple[str, ...]:
        """Operators of the methods to run that the native libraries cannot have."""
        return tuple(name for name in self.operators if name.partition("::")[0] in _PYTHON_ONLY)

    @property
    def python_modules(self) -> tuple[str, ...]:
        """What a Python process has to import for the operators of these methods."""
        spaces = dict.fromkeys(name.partition("::")[0] for name in self.operators)
        return tuple(_PYTHON_EXTRA[space] for space in spaces if space in _PYTHON_EXTRA)

    @property
    def operators(self) -> tuple[str, ...]:
        """Operators outside of delegates, of the methods to run."""
        plans = [require_plan(self.program, method) for method in self.plan.methods]
        return tuple(dict.fromkeys(str(operator) for plan in plans for operator in plan.operators))

    def variables(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Environment variables that the program's backends need and the caller has not set."""
        if _OPENVINO not in self.backends or environment.get("OPENVINO_LIB_PATH"):
            return {}
        library = openvino_library()
        return {"OPENVINO_LIB_PATH": str(library)} if library else {}


def prepare(options: ProfileOptions, scratch: Path) -> Job:
    """Read the program and decide what is run on it. Raises ``UsageError``, ``ProgramError``, ``InputError``.

    ``scratch`` takes what has to be a file: the program of a bundle, and the bytes of given inputs.
    """
    _check_files(options)
    path, cases = _program(options, scratch)
    program = read(path)
    methods = _methods(program, options)
    _check_external(program, methods, options)
    given = _given(options, [case for case in cases if case.method in methods])
    if given:
        from etmem.capture.arrays import ArrayFile

        store = ArrayFile(scratch / "inputs.bin")
        inputs = given_inputs(program, methods, given, options.iterations, store)
    else:
        inputs = default_inputs(program, methods, options.shapes, options.iterations)
    return Job(_plan(options, path, program, methods, inputs), program, inputs.specs)


def _program(options: ProfileOptions, scratch: Path) -> tuple[Path, tuple[GivenInputs, ...]]:
    """The program to load, and the inputs that it comes with: those of a bundle."""
    if not _is_bundle(options.program):
        return options.program, ()
    from etmem.capture.arrays import bundled
    from etmem.program.bundle import unpack

    bundle = unpack(options.program)
    path = scratch / options.program.with_suffix(".pte").name
    path.write_bytes(bundle.program_bytes)
    return path, bundled(bundle, options.program.name)


def _given(options: ProfileOptions, cases: list[GivenInputs]) -> list[GivenInputs]:
    """The caller's arrays, else the bundle's where no shape was chosen."""
    if not options.inputs:
        return [] if options.shapes else cases
    if options.shapes:
        raise UsageError("--input and --shape are both given", "An array has its own shape: leave --shape out.")
    from etmem.capture.arrays import read_npz

    return [entry for file in options.inputs for entry in read_npz(file)]


def _plan(
    options: ProfileOptions, path: Path, program: Program, methods: tuple[str, ...], inputs: Inputs
) -> RunnerPlan:
    backends = {delegate.backend for plan in program.plans for delegate in plan.delegates}
    chosen = {(option.backend, option.key): option for option in _PRESETS[options.preset] if option.backend in backends}
    chosen |= {(option.backend, option.key): option for option in options.backend_options}
    return RunnerPlan(
        program=path,
        methods=methods,
        runs=inputs.runs,
        data=options.data,
        load_mode=options.load_mode,
        libraries=options.libraries,
        options=tuple(chosen.values()),
        threads=options.threads,
        share_arenas=options.share_arenas,
        cycles=options.cycles,
        dry=bool(options.dry),
    )


def _methods(program: Program, options: ProfileOptions) -> tuple[str, ...]:
    """The methods to run: those named, else all that compute something."""
    named = tuple(dict.fromkeys(options.methods))
    if named:
        for method in named:
            require_plan(program, method)
        return named
    found = tuple(plan.name for plan in program.plans if not is_constant_method(plan))
    if not found:
        raise UsageError(
            "every method of this program only returns constants", "Name one with --method to run it all the same."
        )
    return found


def _check_files(options: ProfileOptions) -> None:
    if options.iterations < 1:
        raise UsageError(f"--iterations is {options.iterations}", "One inference is the least.")
    if options.cycles < 1:
        raise UsageError(f"--cycles is {options.cycles}", "One cycle is the least.")
    if options.cycles > 1 and options.dry:
        raise UsageError("--cycles needs a run that computes", "A dry run has no RSS to tell from.")
    if options.threads is not None and options.threads < 1:
        raise UsageError(f"--threads is {options.threads}", "One thread is the least.")
    if options.etrecord is not None and not options.etrecord.is_file():
        raise InputError(f"{options.etrecord} does not exist")
    for library in options.libraries:
        if not library.is_file():
            raise InputError(f"{library} does not exist")


def _check_external(program: Program, methods: tuple[str, ...], options: ProfileOptions) -> None:
    """Raises ``InputError`` for weights that are in no file given, and for a file that holds none."""
    there = {data.key for path in options.data for data in read_data(path).named_data}
    values = (value for method in methods for value in require_plan(program, method).values)
    missing = [value.name or "" for value in values if isinstance(value, Tensor) and value.external]
    missing = [name for name in dict.fromkeys(missing) if name not in there]
    if missing:
        raise InputError(
            f"{options.program.name} keeps {len(missing)} tensors in a file of their own, the first is {missing[0]}",
            "Give that file with --ptd FILE.",
        )


def _is_bundle(path: Path) -> bool:
    """Whether a file is a bundled program. Any trouble with it is told by ``read``, in its words."""
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return file.read(8)[4:8] == FileKind.BPTE.value.encode()
    except OSError:
        return False


def openvino_library() -> Path | None:
    spec = find_spec("openvino")
    folders = spec.submodule_search_locations if spec else None
    found = [path for folder in folders or () for path in Path(folder, "libs").glob("libopenvino_c.so*")]
    return min(found, default=None)
