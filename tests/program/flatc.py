"""What flatc and the wheel's own schemas say of a file, to hold the reader against."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
from pathlib import Path
from typing import Any

_SPEC = importlib.util.find_spec("executorch")
assert _SPEC is not None
assert _SPEC.submodule_search_locations
WHEEL = Path(_SPEC.submodule_search_locations[0])
SCHEMAS = {
    "program": WHEEL / "schema" / "program.fbs",
    "flat_tensor": WHEEL / "extension" / "flat_tensor" / "serialize" / "flat_tensor.fbs",
    "bundled": WHEEL / "devtools" / "bundled_program" / "schema" / "bundled_program_schema.fbs",
}


def to_json(data: bytes, schema: str, directory: Path) -> dict[str, Any]:
    """The flatbuffer as JSON, defaults written out."""
    (directory / "x.bin").write_bytes(data)
    command = [WHEEL / "data" / "bin" / "flatc", "--json", "--defaults-json", "--strict-json", "--natural-utf8"]
    command += ["--raw-binary", "-o", directory, SCHEMAS[schema], "--", directory / "x.bin"]
    subprocess.run([str(word) for word in command], check=True, capture_output=True)
    text = (directory / "x.json").read_text()
    return json.loads(re.sub(r":\s*(-?)inf\b", r": \1Infinity", re.sub(r":\s*nan\b", ": NaN", text)))


def declared(schema: str) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """(table -> its fields as ``name:type``, union -> its members), from the text of a schema."""
    text = re.sub(r"//.*|\(force_align: \d+\)", "", SCHEMAS[schema].read_text())
    tables = {}
    for name, body in re.findall(r"table\s+(\w+)\s*\{([^}]*)\}", text):
        fields = re.findall(r"(\w+)\s*:\s*([\[\]\w.]+)", body)
        tables[name] = [f"{field}:{kind.rpartition('.')[2] if '.' in kind else kind}" for field, kind in fields]
    unions = {
        name: [member for member in re.split(r"[,\s]+", body) if member]
        for name, body in re.findall(r"union\s+(\w+)\s*\{([^}]*)\}", text)
    }
    return tables, unions
