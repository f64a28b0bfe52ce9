"""``etmem plan MODEL.pte``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from etmem.cli.console import text_width, write_file, write_text
from etmem.cli.exits import OK, OVER_BUDGET
from etmem.cli.parameters import PATH, describe_option, json_option
from etmem.model.errors import UsageError

if TYPE_CHECKING:
    from etmem.capture.options import BackendOption, ShapeOption
    from etmem.planning import PlanOptions, ProgramPlan, Region

_LOADERS = ("mmap", "mlock", "file", "buffer")
_PRESETS = ("wheel", "android", "apple")


def _shape(text: str) -> ShapeOption:
    from etmem.capture.options import parse_shape

    return parse_shape(text)


def _backend_option(text: str) -> BackendOption:
    from etmem.capture.options import parse_backend_option

    return parse_backend_option(text)


def _size(text: str) -> int:
    from etmem.planning.options import parse_bytes

    return parse_bytes(text)


def _region(text: str) -> Region:
    from etmem.planning.options import parse_region

    return parse_region(text)


@click.command(name="plan")
@click.argument("model", metavar="MODEL.pte", type=PATH)
@click.option("--ptd", "data", multiple=True, metavar="FILE.ptd", type=PATH, help="External data of the program.")
@click.option("--method", "-m", "methods", multiple=True, metavar="NAME", help="This method only.")
@click.option("--shape", "shapes", multiple=True, type=_shape, metavar="[METHOD:]INDEX=1x64", help="Shape of an input.")
@click.option("--target", metavar="NAME", help="armv7m, armv8m, riscv32, arm64 or x86-64. [default: this machine]")
@click.option("--cpu", metavar="NAME", help="avx512, avx2, sse4.1, cortex-a76, ...: what XNNPACK's tiles follow.")
@click.option("--preset", type=click.Choice(_PRESETS), default="wheel", show_default=True, help="Backend defaults.")
@click.option("--load-mode", "loader", type=click.Choice(_LOADERS), default="mmap", show_default=True)
@click.option("--threads", type=click.IntRange(min=1), help="Size of ExecuTorch's thread pool.")
@click.option(
    "--backend-option", "backend_options", multiple=True, type=_backend_option, metavar="BACKEND:KEY=VALUE",
    help="For example XnnpackBackend:weight_cache_enabled=true.",
)  # fmt: skip
@click.option("--budget", "budget_bytes", type=_size, metavar="512MiB", help="Of private bytes; exit code 3 if over.")
@click.option("--budget-rss", "budget_rss_bytes", type=_size, metavar="512MiB", help="Of resident bytes.")
@click.option(
    "--region", "regions", multiple=True, type=_region, metavar="NAME=SIZE:WHAT,...",
    help="A memory and what lies in it: sram=512KiB:planned.1,method,temp.",
)  # fmt: skip
@click.option("--emit", type=click.Choice(["cmake", "header"]), help="Print pool sizes to paste, nothing else.")
@click.option("--svg", metavar="FILE.svg", help="Draw the arenas.")
@describe_option
@json_option
@click.option("--full", is_flag=True, help="Every tensor of every arena, every part, every finding.")
@click.option("--bytes", "exact", is_flag=True, help="All digits instead of MiB.")
@click.option("--quiet", "-q", is_flag=True, help="No text.")
def command(
    model: Path,
    emit: str | None,
    svg: str | None,
    json: str | None,
    full: bool,
    exact: bool,
    quiet: bool,
    **given: object,
) -> int:  # fmt: skip
    """Say what a program will need, from its file alone: nothing is run, nothing of ExecuTorch is needed.

    \b
    Example:  etmem plan model.pte --budget 512MiB
              etmem plan kws.pte --target armv7m --region sram=512KiB:planned,temp
    """
    from etmem.planning import plan

    found = plan(model, _options(given))
    if json is not None:
        write_file(found.to_json(), json)
    if svg is not None:
        from etmem.report.plan_svg import to_svg

        write_file(to_svg(found), svg)
    if emit is not None:
        write_text(_emitted(found, emit))
    elif not quiet and json != "-" and svg != "-":
        write_text(found.text(full=full, bytes_exact=exact, width=text_width()))
    return OVER_BUDGET if any(verdict.fits is False for verdict in found.verdicts) else OK


def _emitted(found: ProgramPlan, kind: str) -> str:
    from etmem.planning import emit

    return emit.cmake(found) if kind == "cmake" else emit.header(found)


def _options(given: dict[str, object]) -> PlanOptions:
    from etmem.planning import PlanOptions

    shapes: Sequence[ShapeOption] = given.pop("shapes")  # type: ignore[assignment]
    options: Sequence[BackendOption] = given.pop("backend_options")  # type: ignore[assignment]
    for option in options:
        if option.backend != "XnnpackBackend":
            raise UsageError(f"no option of {option.backend} is known here", "XnnpackBackend has options that count")
    values = {option.key: str(option).partition("=")[2] for option in options}
    return PlanOptions(
        shapes={(shape.method, shape.index): shape.shape for shape in shapes},
        backend_options=values,
        **given,  # type: ignore[arg-type]
    )
