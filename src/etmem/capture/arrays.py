"""Input values that the caller brings: ``.npz`` files and the test cases of a bundled program."""

from __future__ import annotations

import re
import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from etmem.model.errors import InputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import numpy.typing as npt

    from etmem.program.bundle import Bundle

_NUMBERED = re.compile(r"(?:(?P<method>.+):)?(?:input_?|arr_)?(?P<index>\d+)$")


@dataclass(frozen=True)
class GivenInputs:
    """One set of values for one method, by input index."""

    name: str
    """What messages call it: the file's name."""
    method: str | None
    """None: the only method that is run."""
    values: Mapping[int, npt.NDArray[np.generic]]

    def value(self, index: int) -> npt.NDArray[np.generic] | None:
        return self.values.get(index)


class ArrayFile:
    """Raw values one after the other in a file, from which the runner reads them into its own tensors."""

    _ALIGNMENT = 64

    def __init__(self, path: Path) -> None:
        self.path = path
        self._bytes = 0

    def add(self, array: npt.NDArray[np.generic]) -> int:
        """Append an array in its C order; the offset of its bytes."""
        data = np.ascontiguousarray(array).tobytes()
        with self.path.open("ab") as file:
            file.write(data)
            file.write(b"\0" * (-len(data) % self._ALIGNMENT))
            offset, self._bytes = self._bytes, file.tell()
        return offset


def read_npz(path: Path) -> tuple[GivenInputs, ...]:
    """The sets of inputs in a ``.npz``: one per method that its names mention (``prefill:0``), or one.

    Arrays named by number (``0``, ``arr_0``, ``input_0``) are those inputs, others are taken in order.
    Raises ``InputError`` for anything that is no such file, ``UsageError`` for names that contradict.
    """
    if path.is_file() and not zipfile.is_zipfile(path):
        raise InputError(f"{path.name} is not an .npz", "Write it with numpy.savez.")
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except FileNotFoundError:
        raise InputError(f"{path} does not exist") from None
    except (OSError, EOFError, ValueError, zipfile.BadZipFile) as error:
        raise InputError(f"{path.name} cannot be read as .npz: {error}", "Write it with numpy.savez.") from error
    numbered = {name: _NUMBERED.match(name) for name in arrays}
    if not all(numbered.values()):
        return (GivenInputs(path.name, None, dict(enumerate(arrays.values()))),)
    sets: dict[str | None, dict[int, npt.NDArray[np.generic]]] = {}
    for name, match in numbered.items():
        assert match is not None
        values = sets.setdefault(match["method"], {})
        if int(match["index"]) in values:
            raise UsageError(f"{path.name} has two arrays for input {match['index']}")
        values[int(match["index"])] = arrays[name]
    return tuple(GivenInputs(path.name, method, values) for method, values in sets.items())


def bundled(bundle: Bundle, name: str) -> tuple[GivenInputs, ...]:
    """The test cases of a bundled program, in order."""
    return tuple(
        GivenInputs(f"{name}, case {number} of {method}", method, {i: np.asarray(v) for i, v in enumerate(case)})
        for method, cases in bundle.cases.items()
        for number, case in enumerate(cases)
    )
