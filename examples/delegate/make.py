"""Builds the delegate, exports the model, checks its outputs, profiles it twice, and writes the reports into README.md.

python make.py            # needs cmake, a C++ compiler, and a Python with etmem, torch and executorch
python make.py --check    # compares README.md with what it would write
"""

from __future__ import annotations

import argparse
import html
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
BEGIN, END = "<!-- reports: written by make.py -->\n", "<!-- end of reports -->\n"
LIBRARIES = {"untouched": "libpool_delegate_plain.so", "with the C ABI": "libpool_delegate.so"}
SECTIONS = ("ARENAS", "DEVICE MEMORY")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=HERE / "build", help="where everything made goes")
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    build = arguments.build.resolve()
    build.mkdir(parents=True, exist_ok=True)
    run("cmake", "-S", HERE, "-B", build, f"-DPython_EXECUTABLE={sys.executable}")
    run("cmake", "--build", build)
    model = build / "pool.pte"
    run(sys.executable, HERE / "export_model.py", model)
    print(run(sys.executable, HERE / "check_outputs.py", model, build / "libpool_delegate.so").splitlines()[-1])
    readme = (HERE / "README.md").read_text(encoding="utf-8")
    before, rest = readme.split(BEGIN)
    written = before + BEGIN + reports(build, model) + END + rest.split(END)[1]
    if arguments.check:
        return int(written != readme)
    (HERE / "README.md").write_text(written, encoding="utf-8")
    return 0


def reports(build: Path, model: Path) -> str:
    """Two cells of a table, side by side."""
    cells = []
    for name, library in LIBRARIES.items():
        trace = build / f"{Path(library).stem}.etmem"
        options = ("--full", "--library", build / library, "--output", trace)
        text = run(sys.executable, "-m", "etmem", "profile", model, *options)
        cells.append(f"<td>\n\n**{name}**\n<pre>\n{html.escape(figures(text))}\n</pre>\n</td>\n")
    return f"<table><tr valign=top>\n{''.join(cells)}</tr></table>\n"


def figures(report: str) -> str:
    """Of a report, what is the same on every machine: no CPU, RSS or bars."""
    blocks = [block.splitlines() for block in report.split("\n\n")]
    first = blocks[0]
    peaks = [line.partition("  RSS")[0].rstrip() for line in first[1:3]]
    owners = [line.rstrip("# ") for line in first[3:]]
    more = [["", *block] for block in blocks if block[0].startswith(SECTIONS)]
    return "\n".join([*peaks, *owners, *(line for block in more for line in block)])


def run(*command: object) -> str:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
