"""``etmem diff A B``."""

from __future__ import annotations

from pathlib import Path

import click

from etmem.cli.console import progress, text_width, write_file, write_text
from etmem.cli.exits import OK, WRONG_FIGURE
from etmem.cli.parameters import PATH, json_option


@click.command(name="diff")
@click.argument("a", metavar="A", type=PATH)
@click.argument("b", metavar="B", type=PATH)
@json_option
@click.option("--markdown", metavar="FILE", help="A table for a pull request; - for stdout, without the text.")
@click.option("--html", metavar="FILE", help="One page; of two runs with both timelines.")
@click.option("--full", is_flag=True, help="Phases, arenas, instances, operators, blocks, and what stands beside.")
@click.option("--quiet", "-q", is_flag=True, help="No text and no progress line.")
def command(a: Path, b: Path, json: str | None, markdown: str | None, html: str | None, full: bool, quiet: bool) -> int:
    """What changed from A to B: two traces, summaries, bundles, or two programs.

    Only bytes that are counted are compared: they are the same from run to run. RSS and the host's memory
    stand beside them (--full). Exit code 4 when a run that is compared failed.

    \b
    Example:  etmem diff before.etmem after.etmem
              etmem diff base.zip head.zip --markdown - >> $GITHUB_STEP_SUMMARY
              etmem diff old.pte new.pte
    """
    from etmem.bundle.comparing import compare_as_page, compare_programs, compare_runs
    from etmem.bundle.sources import Kind, kind_of
    from etmem.report import diff as text
    from etmem.report import diff_markdown, diff_program

    with progress(f"comparing {a.name} and {b.name}", quiet=quiet):
        if Kind.PROGRAM in (kind_of(a), kind_of(b)):
            programs = compare_programs(a, b)
            if html is not None:
                write_file(diff_program.to_html(programs), html)
            results = (diff_program.to_json(programs), diff_program.to_markdown(programs))
            shown = diff_program.render(programs, width=text_width())
            wrong = False
        else:
            if html is not None:
                found, page = compare_as_page(a, b)
                write_file(page, html)
            else:
                found = compare_runs(a, b)
            results = (text.to_json(found), diff_markdown.to_markdown(found))
            shown = text.render(found, width=text_width(), full=full)
            wrong = any(mismatch.code.value == "failed_run" for mismatch in found.mismatches)
    for content, path in zip(results, (json, markdown), strict=True):
        if path is not None:
            write_file(content, path)
    if not quiet and "-" not in (json, markdown, html):
        write_text(shown)
    return WRONG_FIGURE if wrong else OK
