"""``etmem check TARGET --budget FILE``."""

from __future__ import annotations

import json as json_
from pathlib import Path

import click

from etmem.cli.console import progress, text_width, write_file, write_text
from etmem.cli.exits import FAILURE, OK, OVER_BUDGET
from etmem.cli.parameters import PATH, json_option

_CODES = {"ok": OK, "over": OVER_BUDGET, "error": FAILURE}


@click.command(name="check")
@click.argument("targets", metavar="TARGET ...", nargs=-1, required=True, type=PATH)
@click.option("--budget", "-b", required=True, metavar="FILE.toml", type=PATH, help="The limits: docs/budgets.md.")
@click.option("--repeats", type=click.IntRange(min=1), help="Runs of a program; the largest figure counts.")
@click.option("--update", is_flag=True, help="Write the target's run as the budget's baseline instead of checking.")
@json_option
@click.option("--markdown", metavar="FILE", help="The verdict as a table; - for stdout, without the text.")
@click.option("--junit", metavar="FILE", help="The verdict as JUnit XML; - for stdout, without the text.")
@click.option("--quiet", "-q", is_flag=True, help="No text and no progress line.")
def command(
    targets: tuple[Path, ...],
    budget: Path,
    repeats: int | None,
    update: bool,
    json: str | None,
    markdown: str | None,
    junit: str | None,
    quiet: bool,
) -> int:
    """Whether a result (a trace, summary or bundle) or a program, which is run then, keeps to a budget.

    Exit code 3 when a limit is passed, 1 when one cannot be told: a target that lacks what a limit needs does
    not pass it.

    \b
    Example:  etmem check model.pte --budget budgets.toml
              etmem check run.etmem --budget budgets.toml --junit etmem.xml
              etmem check run.etmem --budget budgets.toml --update
    """
    from etmem.bundle.checking import check_target, read_budget, update_baselines, worst
    from etmem.model.errors import UsageError
    from etmem.report.junit import to_junit
    from etmem.report.verdict import render, to_json, to_markdown

    limits = read_budget(budget)
    folder = budget.absolute().parent
    if update:
        if len(targets) != 1:
            raise UsageError("--update takes one target", "A baseline is one run.")
        with progress(f"updating the baseline from {targets[0].name}", quiet=quiet) as step:
            written = update_baselines(targets[0], limits, folder, step)
        if not quiet:
            write_text("".join(f"baseline {path}\n" for path in written))
        return OK
    with progress(f"checking {targets[0].name}", quiet=quiet) as step:
        verdicts = tuple(check_target(target, limits, folder, repeats=repeats, progress=step) for target in targets)
    if json is not None:
        data = [json_.loads(to_json(verdict)) for verdict in verdicts]
        write_file(json_.dumps(data[0] if len(data) == 1 else data, indent=2) + "\n", json)
    if markdown is not None:
        write_file("\n".join(map(to_markdown, verdicts)), markdown)
    if junit is not None:
        write_file(to_junit(verdicts), junit)
    if not quiet and "-" not in (json, markdown, junit):
        write_text("\n".join(render(verdict, width=text_width()) for verdict in verdicts))
    return _CODES[worst(verdicts)]
