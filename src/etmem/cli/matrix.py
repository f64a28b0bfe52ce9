"""``etmem matrix``: many programs and options, one table."""

from __future__ import annotations

from pathlib import Path

import click

from etmem.cli.console import progress, text_width, write_file, write_text
from etmem.cli.exits import FAILURE, OK
from etmem.cli.parameters import PATH, json_option


@click.command(name="matrix")
@click.argument("programs", metavar="MODEL.pte ...", nargs=-1, required=True, type=PATH)
@click.option("--matrix", "-m", "file", metavar="FILE.toml", type=PATH, help="Options to combine: docs/matrix.md.")
@click.option(
    "--results", metavar="DIR", type=PATH, default=Path("etmem-matrix"), show_default=True,
    help="A bundle and a row of each entry; those that are there are not run again.",
)  # fmt: skip
@click.option("--executor", default="local", show_default=True, help="local, local:JOBS or dask://HOST:PORT.")
@json_option
@click.option("--markdown", metavar="FILE", help="The table as Markdown; - for stdout, without the text.")
@click.option("--parquet", metavar="FILE", type=PATH, help="All rows with all figures; needs pyarrow.")
@click.option("--bytes", "exact", is_flag=True, help="All digits instead of MiB.")
@click.option("--quiet", "-q", is_flag=True, help="No table and no progress line.")
def command(
    programs: tuple[Path, ...],
    file: Path | None,
    results: Path,
    executor: str,
    json: str | None,
    markdown: str | None,
    parquet: Path | None,
    exact: bool,
    quiet: bool,
) -> int:
    """Profile many programs, with every combination of options, each in a process of its own.

    An entry that fails or is killed is a row; exit code 1 says that there is one. After an interruption the same
    command goes on where it was.

    \b
    Example:  etmem matrix models/*.pte --matrix matrix.toml
              etmem matrix *.pte -m matrix.toml --executor dask://lab:8786
    """
    from etmem.matrix.executors import open_executor, parse_place
    from etmem.matrix.model import Matrix, RowStatus
    from etmem.matrix.parse import entries, read_matrix
    from etmem.matrix.running import run_matrix
    from etmem.report.matrix import render, to_json, to_markdown, write_parquet

    place = parse_place(executor)
    matrix = read_matrix(file) if file is not None else Matrix(({},))
    wanted = entries(programs, matrix)
    with progress(f"profiling {len(wanted)} entries", quiet=quiet) as step, open_executor(place) as opened:
        rows = run_matrix(
            wanted, opened, results, timeout_seconds=matrix.timeout_seconds, remote=place.remote, progress=step
        )
    if json is not None:
        write_file(to_json(rows), json)
    if markdown is not None:
        write_file(to_markdown(rows), markdown)
    if parquet is not None:
        write_parquet(rows, parquet)
    if not quiet and "-" not in (json, markdown):
        write_text(render(rows, width=text_width(), exact=exact))
    return OK if all(row.status is RowStatus.OK for row in rows) else FAILURE
