"""Profile every program of a folder, compare with the bundles of an earlier run, and write one Markdown page.

    python compare.py MODELS --out bundles [--base base-bundles] [--budget budgets.toml] [--markdown page.md]

It needs nothing but an installed etmem. Exit codes: 0 ok, 1 a program could not be profiled or compared,
3 over budget.
"""  # noqa: INP001 -- a script that the action runs

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

OK, FAILURE, OVER_BUDGET = 0, 1, 3
MIB = 1024 * 1024
LONGEST_PAGE = 60_000
"""Characters: GitHub refuses a comment of more than 65,536."""


@dataclass(frozen=True)
class Row:
    """One program's line of the table, and what stands below it."""

    name: str
    cells: tuple[str, ...]
    state: str
    details: str = ""
    code: int = OK


def main(arguments: list[str]) -> int:
    options = _options(arguments)
    programs = sorted(options.models.rglob("*.pte"))
    if not programs:
        sys.stderr.write(f"no .pte file in {options.models}\n")
        return FAILURE
    options.out.mkdir(parents=True, exist_ok=True)
    names = [program.relative_to(options.models).with_suffix("").as_posix().replace("/", "__") for program in programs]
    rows = [_row(program, name, options) for program, name in zip(programs, names, strict=True)]
    if options.base is not None:
        gone = sorted({path.stem for path in options.base.glob("*.zip")} - set(names))
        rows += [Row(name, ("-", "-", "-"), "gone") for name in gone]
    text = page(rows)
    if options.markdown is not None:
        options.markdown.write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)
    codes = {row.code for row in rows}
    return FAILURE if FAILURE in codes else OVER_BUDGET if OVER_BUDGET in codes else OK


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("models", type=Path, help="the folder of .pte files")
    parser.add_argument("--out", type=Path, required=True, help="where this run's bundles go")
    parser.add_argument("--base", type=Path, help="the bundles to compare with; may be missing")
    parser.add_argument("--budget", type=Path, help="limits that every program has to keep to")
    parser.add_argument("--markdown", type=Path, help="the page; stdout without it")
    parser.add_argument("--profile-options", default="", help="more options of etmem profile, as one text")
    return parser.parse_args(arguments)


def _row(program: Path, name: str, options: argparse.Namespace) -> Row:
    bundle = options.out / f"{name}.zip"
    with tempfile.TemporaryDirectory() as scratch:
        done = _etmem(
            "profile", program, "--quiet", "--output", Path(scratch, f"{program.stem}.etmem"),
            *("--json", Path(scratch, "summary.json"), "--bundle", bundle), *shlex.split(options.profile_options),
        )  # fmt: skip
        if done.returncode != OK:
            return Row(name, ("-", "-", "-"), "failed", _fenced(done.stderr), FAILURE)
        summary = json.loads(Path(scratch, "summary.json").read_text(encoding="utf-8"))
    row = _compared(name, bundle, summary, options.base)
    return _checked(row, bundle, options.budget)


def _compared(name: str, bundle: Path, summary: dict, base_folder: Path | None) -> Row:  # type: ignore[type-arg]
    base = base_folder / f"{name}.zip" if base_folder is not None else None
    if base is None or not base.is_file():
        cells = tuple(_size(_total(summary["peaks"][at])) for at in ("load", "inference", "steady"))
        return Row(name, cells, "new" if base is not None else "")
    data, text = (_etmem("diff", base, bundle, form, "-") for form in ("--json", "--markdown"))
    if data.returncode != OK:
        return Row(name, ("-", "-", "-"), "not comparable", _fenced(data.stderr), FAILURE)
    diff = json.loads(data.stdout)
    peaks = {peak["at"]: peak for peak in diff["peaks"]}
    cells = tuple(_change(peaks.get(at)) for at in ("load", "inference", "steady"))
    changed = any(peak["delta_bytes"] for peak in diff["peaks"]) or bool(diff["changes"])
    state = ", ".join(filter(None, ("changed" if changed else "same", "not alike" if diff["mismatches"] else "")))
    return Row(name, cells, state, text.stdout if changed or diff["mismatches"] else "")


def _checked(row: Row, bundle: Path, budget: Path | None) -> Row:
    if budget is None or row.code != OK:
        return row
    done = _etmem("check", bundle, "--budget", budget, "--markdown", "-")
    if done.returncode == OK:
        return row
    state = "over budget" if done.returncode == OVER_BUDGET else "no verdict"
    code = OVER_BUDGET if done.returncode == OVER_BUDGET else FAILURE
    details = "\n\n".join(part for part in (row.details, done.stdout or _fenced(done.stderr)) if part)
    return Row(row.name, row.cells, f"{row.state}, **{state}**" if row.state else f"**{state}**", details, code)


def page(rows: list[Row]) -> str:
    """A table of all programs, and under it what changed in those that did."""
    counts = {word: sum(row.state.startswith(word) for row in rows) for word in ("changed", "new", "gone", "failed")}
    over = sum(row.code == OVER_BUDGET for row in rows)
    words = [f"{count} {word}" for word, count in counts.items() if count] + ([f"{over} over budget"] if over else [])
    lines = [f"## Memory: {', '.join(words) or 'no change'}", ""]
    lines += ["| program | load | inference | steady | |", "| :-- | --: | --: | --: | :-- |"]
    lines += [f"| `{row.name}` | {' | '.join(row.cells)} | {row.state} |" for row in rows]
    end = ["", "Counted private and file-backed bytes of ExecuTorch and its delegates; etmem diff has every level."]
    left = LONGEST_PAGE - len("\n".join([*lines, *end]))
    hidden = 0
    for row in rows:
        details = _folded(row) if row.details else ""
        if len(details) > left:
            hidden += 1
        elif details:
            lines.append(details)
            left -= len(details) + 1
    lines += ["", f"Of {hidden} more there is no room here: etmem diff on the bundles."] if hidden else []
    return "\n".join([*lines, *end]) + "\n"


def _folded(row: Row) -> str:
    summary = f"<summary><code>{row.name}</code> {row.state.replace('*', '')}</summary>"
    return "\n".join(["", f"<details>{summary}", "", row.details.strip(), "", "</details>"])


def _etmem(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "etmem", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)


def _total(peak: dict | None) -> int | None:  # type: ignore[type-arg]
    return peak["moment"]["private_bytes"] + peak["moment"]["file_bytes"] if peak else None


def _change(peak: dict | None) -> str:  # type: ignore[type-arg]
    if peak is None or peak["a"] is None or peak["b"] is None:
        return "-"
    old, new = (peak[side]["private_bytes"] + peak[side]["file_bytes"] for side in ("a", "b"))
    if old == new:
        return _size(new)
    percent = f", {100 * (new - old) / old:+.1f} %" if old else ""
    return f"{_size(old)} → **{_size(new)}** ({new - old:+,} B{percent})"


def _size(count: int | None) -> str:
    return "-" if count is None else f"{count / MIB:.2f} MiB" if count >= MIB / 10 else f"{count / 1024:.1f} KiB"


def _fenced(text: str) -> str:
    return "```\n" + text.strip().replace("```", "'''") + "\n```"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
