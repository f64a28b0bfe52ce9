"""The inputs of a run: from the file's bounds, from ``--shape``, from ``.npz`` files or a bundled program.

Everything that ExecuTorch would refuse is refused here, before anything runs, in the user's words.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

from etmem.capture.plan import Fill, MethodRun, PlanInput, ScalarInput, TensorInput
from etmem.model.errors import InputError, UsageError
from etmem.model.summary import InputSpec
from etmem.program.model import Dynamism, Program, ValueKind
from etmem.program.signature import InputInfo, inputs

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np
    import numpy.typing as npt

    from etmem.capture.arrays import ArrayFile, GivenInputs
    from etmem.capture.options import ShapeOption

_LISTS = (
    ValueKind.INT_LIST,
    ValueKind.DOUBLE_LIST,
    ValueKind.BOOL_LIST,
    ValueKind.TENSOR_LIST,
    ValueKind.OPTIONAL_TENSOR_LIST,
)


@dataclass(frozen=True)
class Inputs:
    runs: tuple[MethodRun, ...]
    specs: tuple[InputSpec, ...]
    """Every tensor that is given, in the order of the runs."""


def default_inputs(program: Program, methods: Sequence[str], shapes: Sequence[ShapeOption], iterations: int) -> Inputs:
    """Random floats and zero integers, at the file's shapes or at those of ``--shape``.

    Several shapes of one input make as many runs. Raises ``UsageError`` for a shape that does not fit.
    """
    _check_methods(methods, shapes)
    seeds = count(1)
    runs: list[MethodRun] = []
    specs: list[InputSpec] = []
    for method in methods:
        infos = inputs(program, method)
        for chosen in _shape_sets(method, infos, shapes, only=len(methods) == 1):
            values = [_default(method, info, chosen.get(info.index), next(seeds)) for info in infos]
            runs.append(MethodRun(method, iterations, tuple(values)))
            specs += _specs(method, infos, values, chosen)
    return Inputs(tuple(runs), tuple(specs))


def given_inputs(
    program: Program, methods: Sequence[str], given: Sequence[GivenInputs], iterations: int, store: ArrayFile
) -> Inputs:
    """The caller's own values, one run for each set; a method without any runs on defaults.

    Raises ``UsageError`` for a value that does not fit.
    """
    _check_given(methods, given)
    runs: list[MethodRun] = []
    specs: list[InputSpec] = []
    for method in methods:
        sets = [entry for entry in given if entry.method in (None, method)]
        if not sets:
            default = default_inputs(program, (method,), (), iterations)
            runs += default.runs
            specs += default.specs
        infos = inputs(program, method)
        for entry in sets:
            values = [_given(method, info, entry, store) for info in infos]
            _check_rest(method, len(infos), entry)
            runs.append(MethodRun(method, iterations, tuple(values)))
            specs += _specs(method, infos, values, {info.index: () for info in infos})
    return Inputs(tuple(runs), tuple(specs))


def _check_given(methods: Sequence[str], given: Sequence[GivenInputs]) -> None:
    for entry in given:
        if entry.method is None and len(methods) > 1:
            raise UsageError(
                f"{entry.name} does not say which of {len(methods)} methods it is for",
                f"Choose one with --method NAME, or name its arrays {methods[0]}:0, {methods[0]}:1, ...",
            )
        if entry.method is not None and entry.method not in methods:
            raise UsageError(f"{entry.name} has inputs for {entry.method}, which is not run")


def _check_methods(methods: Sequence[str], shapes: Sequence[ShapeOption]) -> None:
    for option in shapes:
        if option.method is not None and option.method not in methods:
            raise UsageError(f"--shape names the method {option.method!r}, which is not run")


def _shape_sets(
    method: str, infos: Sequence[InputInfo], shapes: Sequence[ShapeOption], *, only: bool
) -> Iterator[dict[int, tuple[int, ...]]]:
    """For each run the shapes chosen by the user: the n-th of each input, or its only one."""
    by_index: dict[int, list[tuple[int, ...]]] = {}
    for option in shapes:
        if option.method not in (None, method):
            continue
        if option.index < len(infos):
            by_index.setdefault(option.index, []).append(option.shape)
        elif option.method is not None or only:
            raise UsageError(f"{method} has no input {option.index}", f"It has {len(infos)}, counted from 0.")
    runs = max((len(chosen) for chosen in by_index.values()), default=1)
    for index, chosen in by_index.items():
        if len(chosen) not in (1, runs):
            raise UsageError(
                f"input {index} of {method} has {len(chosen)} shapes, another input {runs}",
                "Give every input one shape, or all the same number.",
            )
    for number in range(runs):
        yield {index: chosen[number if len(chosen) > 1 else 0] for index, chosen in by_index.items()}


def _default(method: str, info: InputInfo, shape: tuple[int, ...] | None, seed: int) -> PlanInput:
    if info.dtype is None:
        if shape is not None:
            raise UsageError(f"input {info.index} of {method} is no tensor: it has no shape")
        return _scalar(method, info)
    if shape is not None:
        check_shape(method, info, shape)
    floating = "float" in info.dtype.name or "complex" in info.dtype.name
    fill = Fill.RANDOM if floating and not info.dtype.name.startswith("float8") else Fill.ZEROS
    return TensorInput(info.dtype.code, info.shape if shape is None else shape, fill, seed)


def _scalar(method: str, info: InputInfo) -> ScalarInput:
    """The value in the file: the runtime accepts no other one."""
    if info.kind in _LISTS:
        raise InputError(
            f"input {info.index} of {method} is a list, which ExecuTorch's Method::set_input does not take",
            "Export the method with the list's items as inputs of their own.",
        )
    assert not isinstance(info.default, tuple)
    return ScalarInput(info.kind, info.default)


def _given(method: str, info: InputInfo, entry: GivenInputs, store: ArrayFile) -> PlanInput:
    if info.dtype is None:
        return _scalar(method, info)
    value = entry.value(info.index)
    if value is None:
        raise UsageError(
            f"{entry.name} has no value for input {info.index} of {method}", "Arrays are named 0, 1, ... or in order."
        )
    array = _fitting(method, info, value, entry.name)
    # In memory order: a channels-last tensor is not what the array's C order says.
    stored = array.transpose(info.dim_order) if len(info.dim_order) == array.ndim else array
    return TensorInput(info.dtype.code, array.shape, Fill.FILE, path=store.path, offset=store.add(stored))


def _fitting(method: str, info: InputInfo, value: npt.NDArray[np.generic], name: str) -> npt.NDArray[np.generic]:
    assert info.dtype is not None
    accepted = {info.dtype.numpy, info.dtype.name}
    if value.dtype.name not in accepted:
        raise UsageError(
            f"input {info.index} of {method} is {info.dtype.name}, {name} gives {value.dtype.name}",
            f"Save it as {info.dtype.numpy}" + (" holding the raw bits." if info.dtype.bits else "."),
        )
    check_shape(method, info, value.shape)
    return value


def check_shape(method: str, info: InputInfo, shape: tuple[int, ...]) -> None:
    """Raises ``UsageError`` for a shape that the input cannot take."""
    expected = "x".join(str(size) for size in info.shape) or "scalar"
    shown = "x".join(str(size) for size in shape) or "scalar"
    if len(shape) != len(info.shape):
        raise UsageError(
            f"input {info.index} of {method} has {len(info.shape)} dimensions ({expected}), not {len(shape)} ({shown})"
        )
    if info.dynamism is Dynamism.STATIC and shape != info.shape:
        raise UsageError(
            f"input {info.index} of {method} has the fixed shape {expected}, not {shown}",
            "Export the program with dynamic_shapes to run it at several.",
        )
    if info.dynamism is Dynamism.DYNAMIC_BOUND and any(a > b for a, b in zip(shape, info.shape, strict=True)):
        raise UsageError(f"input {info.index} of {method} is at most {expected}, not {shown}")


def _check_rest(method: str, inputs_: int, entry: GivenInputs) -> None:
    if len(entry.values) > inputs_:
        raise UsageError(f"{entry.name} has {len(entry.values)} arrays, {method} takes {inputs_}")


def _specs(
    method: str, infos: Sequence[InputInfo], values: Sequence[PlanInput], chosen: dict[int, tuple[int, ...]]
) -> list[InputSpec]:
    return [
        InputSpec(method, info.index, info.dtype.name, value.shape, info.upper_bound and info.index not in chosen)
        for info, value in zip(infos, values, strict=True)
        if info.dtype is not None and isinstance(value, TensorInput)
    ]
