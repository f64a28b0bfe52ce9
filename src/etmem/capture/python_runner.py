"""``python -m etmem.capture.python_runner``: what ``etmem-runner`` does, through ExecuTorch's Python bindings.

It runs inside the profiled process: it imports as little as it can and keeps nothing that it does not need.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from etmem.capture import client
from etmem.capture.failures import Exit
from etmem.capture.plan_text import Item, items

if TYPE_CHECKING:
    from collections.abc import Sequence

_ERRORS = {
    0x01: "Internal",
    0x02: "InvalidState",
    0x10: "NotSupported",
    0x11: "NotImplemented",
    0x12: "InvalidArgument",
    0x13: "InvalidType",
    0x14: "OperatorMissing",
    0x20: "NotFound",
    0x21: "MemoryAllocationFailed",
    0x22: "AccessFailed",
    0x23: "InvalidProgram",
    0x24: "InvalidExternalData",
    0x25: "OutOfResources",
    0x30: "DelegateInvalidCompatibility",
    0x31: "DelegateMemoryAllocationFailed",
    0x32: "DelegateInvalidHandle",
}
_DTYPES = {
    0: "uint8", 1: "int8", 2: "int16", 3: "int32", 4: "int64", 5: "float16", 6: "float32", 7: "float64",
    8: "complex32", 9: "complex64", 10: "complex128", 11: "bool", 15: "bfloat16", 23: "float8_e5m2",
    24: "float8_e4m3fn", 25: "float8_e5m2fnuz", 26: "float8_e4m3fnuz", 27: "uint16", 28: "uint32", 29: "uint64",
}  # fmt: skip


class _FailedError(Exception):
    def __init__(self, status: Exit, phase: str, what: str, cause: BaseException) -> None:
        super().__init__(what)
        match = re.search(r"0x([0-9a-fA-F]+)", str(cause))
        error = _ERRORS.get(int(match[1], 16), "Internal") if match else "Internal"
        self.status = status
        self.line = f"error\t{phase}\t{error}\t{what}"


class _Runner:
    def __init__(self, plan: Sequence[Item], tell: _Tell) -> None:
        self._plan = plan
        self._tell = tell
        self._dry = any(item.name == "dry" for item in plan)
        self._path = Path(next(item.fields[0] for item in plan if item.name == "program"))

    def run(self) -> int:
        """Carries out the plan; returns what the process ends with."""
        for item in self._all("library"):
            self._step(Exit.LIBRARY_FAILED, "library", item.fields[0], lambda path=item.fields[0]: ctypes.CDLL(path))
        program = self._load_program()
        methods: dict[str, Any] = {}
        for item in self._all("method"):
            name = item.fields[0]
            self._tell(f"method_load\t{name}")
            methods[name] = self._step(
                Exit.METHOD_FAILED, "method_load", name, lambda name=name: program.load_method(name)
            )
        status = self._runs(methods)
        for item in self._all("etdump"):
            self._write_etdump(program, item.fields[0])
        for name in list(methods):
            self._tell(f"unload\t{name}")
            del methods[name]
        return status

    def _load_program(self) -> Any:
        from executorch.extension.pybindings import portable_lib
        from executorch.runtime import Runtime, Verification

        for item in self._all("threads"):
            portable_lib._unsafe_reset_threadpool(int(item.fields[0]))  # noqa: SLF001 -- the only way
        buffer = any(item.fields[0] == "buffer" for item in self._all("loader"))
        more = [("data_path", item.fields[0]) for item in self._all("data")]
        # Asked for only where it is wanted: with a tracer, delegates allocate for their timings.
        more += [("enable_etdump", True) for _ in self._all("etdump")]
        self._tell(f"program_load\t{self._path}")
        source = self._path.read_bytes() if buffer else self._path
        load = Runtime.get().load_program
        return self._step(
            Exit.PROGRAM_FAILED,
            "program_load",
            str(self._path),
            lambda: load(source, verification=Verification.Minimal, **dict(more)),
        )

    def _write_etdump(self, program: Any, path: str) -> None:
        """ExecuTorch says nothing where it was built without an event tracer: the file is then not there."""
        self._step(Exit.OUTPUT_FAILED, "etdump", path, lambda: program.write_etdump_result_to_file(path, os.devnull))

    def _runs(self, methods: dict[str, Any]) -> int:
        client.expect_inferences(sum(int(item.fields[1]) for item in self._all("run")))
        status = int(Exit.OK)
        for number, item in enumerate(self._all("run")):
            name, iterations = item.fields[0], int(item.fields[1])
            values = [self._value(name, index, entry) for index, entry in enumerate(item.children)]
            for iteration in range(iterations):
                self._tell(f"inference\t{name}\t{number}\t{iteration}")
                kind = Exit.DRY_STOPPED if self._dry else Exit.EXECUTION_FAILED
                try:
                    self._step(kind, "inference", name, lambda name=name, values=values: methods[name].execute(values))
                except _FailedError as failed:
                    if not self._dry:
                        raise
                    self._tell(failed.line)
                    status = failed.status
        return status

    def _value(self, method: str, index: int, item: Item) -> Any:
        """The input of one line of the plan."""
        kind, fields = item.name, item.fields
        if kind == "tensor":
            return self._tensor(method, index, fields)
        if kind == "none":
            return None
        if kind in ("int", "bool"):
            return bool(int(fields[0])) if kind == "bool" else int(fields[0])
        return float(fields[0]) if kind == "double" else fields[0]

    def _tensor(self, method: str, index: int, fields: Sequence[str]) -> Any:
        import torch

        dtype = getattr(torch, _DTYPES.get(int(fields[0]), ""), None)
        if dtype is None:
            raise _FailedError(Exit.INPUT_FAILED, "inputs", f"{method}: torch has no dtype {fields[0]}", ValueError())
        shape = [int(size) for size in fields[1].split("x")] if fields[1] != "-" else []
        if fields[2] == "file":
            return _from_file(Path(fields[3]), int(fields[4]), shape, dtype, self._dim_order(method, index, len(shape)))
        if self._dry:
            return torch.empty(shape, dtype=dtype)
        if fields[2] == "random":
            generator = torch.Generator().manual_seed(int(fields[3]))
            exact = dtype if dtype in (torch.float32, torch.float64) else torch.float32
            return torch.rand(shape, generator=generator, dtype=exact).to(dtype)
        return torch.zeros(shape, dtype=dtype)

    def _dim_order(self, method: str, index: int, rank: int) -> Sequence[int]:
        from etmem.program import inputs, read

        order = inputs(read(self._path), method)[index].dim_order
        return order if len(order) == rank else range(rank)

    def _step(self, status: Exit, phase: str, what: str, call: Any) -> Any:
        try:
            return call()
        except (RuntimeError, OSError, TypeError, ValueError) as error:
            sys.stderr.write(f"{phase}: {error}\n")
            raise _FailedError(status, phase, what, error) from error

    def _all(self, name: str) -> Any:
        return (item for item in self._plan if item.name == name)


class _Tell:
    """Progress lines to the launcher's descriptor; to nobody without one."""

    def __init__(self, descriptor: int | None) -> None:
        self._file = None if descriptor is None else os.fdopen(descriptor, "w", buffering=1)

    def __call__(self, line: str) -> None:
        if self._file is not None:
            self._file.write(line + "\n")


def _from_file(path: Path, offset: int, shape: Sequence[int], dtype: Any, dim_order: Sequence[int]) -> Any:
    """A tensor whose bytes lie in the file in memory order."""
    import torch

    count = torch.Size(shape).numel()
    if count == 0:
        return torch.empty(list(shape), dtype=dtype)
    data = torch.from_file(str(path), shared=False, size=path.stat().st_size, dtype=torch.uint8)
    values = data[offset : offset + count * dtype.itemsize].clone().view(dtype)
    stored = values.reshape([shape[dimension] for dimension in dim_order])
    return stored.permute([list(dim_order).index(dimension) for dimension in range(len(shape))])


def main(arguments: Sequence[str]) -> int:
    modules, text, *descriptor = arguments
    tell = _Tell(int(descriptor[0]) if descriptor else None)
    try:
        for module in filter(None, modules.removeprefix("--import=").split(",")):
            import_module(module)
        status = _Runner(items(os.fsdecode(Path(text).read_bytes())), tell).run()
    except _FailedError as failed:
        tell(failed.line)
        status = failed.status
    tell(f"done\t{int(status)}")
    return int(status)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
