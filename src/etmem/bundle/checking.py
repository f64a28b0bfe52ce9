"""``etmem check`` without its printing: budgets and baselines as files, targets as runs."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from etmem.analysis.budget import check
from etmem.analysis.budget_parse import parse_budget
from etmem.bundle.sources import Kind, kind_of, load
from etmem.model.errors import EtmemError, InputError, UsageError, reason

if TYPE_CHECKING:
    from etmem.analysis.budget_model import Budget, Verdict
    from etmem.model.summary import Summary

Progress = Callable[[str], None]


def read_budget(path: Path) -> Budget:
    """Raises InputError."""
    try:
        return parse_budget(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"cannot read {path}: {reason(error)}", "give a budget: docs/budgets.md has an example"
        ) from error


def check_target(
    target: Path, budget: Budget, folder: Path, *, repeats: int | None = None, progress: Progress = lambda _: None
) -> Verdict:
    """The verdict on a result, or on a program, which is run as often as the budget says.

    ``folder`` is the one that baselines are relative to. Raises EtmemError.
    """
    runs = _runs(target, repeats or budget.repeats, progress)
    return check(budget, runs, read_baselines(budget, folder), target=target.name)


def update_baselines(target: Path, budget: Budget, folder: Path, progress: Progress = lambda _: None) -> list[Path]:
    """Writes the target's run as every baseline that the budget names. Raises UsageError where it names none."""
    names = list(dict.fromkeys(limit.baseline for limit in budget.limits if limit.baseline is not None))
    if not names:
        raise UsageError("no limit of the budget has a baseline", "--update writes baselines; max is yours to change")
    with TemporaryDirectory(prefix="etmem-") as scratch:
        source = target
        if kind_of(target) is Kind.PROGRAM:
            progress(f"profiling {target.name}")
            source = _profile(target, Path(scratch))
        return [_write(source, folder / name) for name in names]


def _runs(target: Path, repeats: int, progress: Progress) -> list[Summary]:
    if kind_of(target) is not Kind.PROGRAM:
        return [load(target).summary]
    from etmem.api import summarize_trace

    found = []
    for number in range(repeats):
        progress(f"profiling {target.name}, {number + 1} of {repeats}")
        with TemporaryDirectory(prefix="etmem-") as scratch:
            found.append(summarize_trace(_profile(target, Path(scratch))))
    return found


def _profile(program: Path, scratch: Path) -> Path:
    from etmem.capture.options import ProfileOptions
    from etmem.capture.profile import profile

    return profile(ProfileOptions(program=program, output=scratch / "run.etmem")).trace_path


def read_baselines(budget: Budget, folder: Path) -> dict[str, Summary]:
    """Those that are there; what is missing is an error of its limits, not of the others."""
    names = dict.fromkeys(limit.baseline for limit in budget.limits if limit.baseline is not None)
    return {name: load(folder / name).summary for name in names if (folder / name).exists()}


def _write(source: Path, target: Path) -> Path:
    from etmem.bundle.writing import write_bundle
    from etmem.report.json import to_json

    kind = kind_of(source)
    try:
        if target.suffix == ".json":
            target.write_text(to_json(load(source).summary), encoding="utf-8")
        elif kind is Kind.TRACE:
            write_bundle(target, source)
        elif kind is Kind.BUNDLE and source.is_dir() == (target.suffix != ".zip"):
            _copy(source, target)
        else:
            hint = "name the baseline NAME.json, or give the trace"
            raise UsageError(f"{source.name} is a {kind.value}: {target.name} cannot be made of it", hint)
    except OSError as error:
        raise EtmemError(f"cannot write {target}: {reason(error)}", "give a place that can be written") from error
    return target


def _copy(source: Path, target: Path) -> None:
    load(source)  # refuses a bundle that is not whole
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True)
    else:
        shutil.copyfile(source, target)


def worst(verdicts: Sequence[Verdict]) -> str:
    """``error``, ``over`` or ``ok``."""
    found = {verdict.status.value for verdict in verdicts}
    return next((word for word in ("error", "over") if word in found), "ok" if found else "error")
