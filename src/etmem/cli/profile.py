"""``etmem profile MODEL.pte``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from etmem.capture import cpus
from etmem.capture.options import (
    DEFAULT_ITERATIONS,
    LoadMode,
    Preset,
    ProfileOptions,
    Runtime,
    parse_backend_option,
    parse_shape,
)
from etmem.cli.console import progress, write_text
from etmem.cli.etdump import etdump_note, etdump_options
from etmem.cli.exports import export_options, wanted
from etmem.cli.output import OutputOptions, of_one_run, output_options, present
from etmem.cli.parameters import (
    PATH,
    choice,
    describe_option,
    executorch_option,
    keep_rusage_option,
    source_option,
    stacks_option,
    trace_option,
    verbose_option,
)


def _list_cpus(context: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    if value == "list":
        write_text(cpus.listing())
        context.exit()
    return value


@click.command(name="profile")
@click.argument("model", metavar="MODEL.pte", type=PATH)
@click.option("--method", "-m", "methods", multiple=True, metavar="NAME", help="Load and run this method only.")
@click.option(
    "--iterations",
    "-n",
    type=click.IntRange(min=1),
    default=DEFAULT_ITERATIONS,
    show_default=True,
    help="Inferences of each method; the first warms up.",
)
@click.option(
    "--cycles", type=click.IntRange(min=1), default=1, help="Load, run and unload N times: leak, or kept by malloc?"
)
@click.option(
    "--input", "inputs", multiple=True, metavar="FILE.npz", type=PATH, help="Inputs; several files run in turn."
)
@click.option(
    "--shape",
    "shapes",
    multiple=True,
    type=parse_shape,
    metavar="[METHOD:]INDEX=1x3x224x224",
    help="Shape of one input; several for the same input run one after the other.",
)
@click.option(
    "--load-mode", type=choice(LoadMode), default=LoadMode.MMAP.value, show_default=True, help="How the file is loaded."
)
@click.option("--ptd", "data", multiple=True, metavar="FILE.ptd", type=PATH, help="External data of the program.")
@click.option("--threads", type=click.IntRange(min=1), help="Size of ExecuTorch's thread pool.")
@click.option(
    "--backend-option",
    "backend_options",
    multiple=True,
    type=parse_backend_option,
    metavar="BACKEND:KEY=VALUE",
    help="For example XnnpackBackend:workspace_sharing_mode=0.",
)
@click.option(
    "--preset",
    metavar="|".join(Preset) + "[,...]",
    default=Preset.WHEEL.value,
    show_default=True,
    help="Backend defaults of this ExecuTorch build; of several, one table.",
)
@click.option("--share-arenas", is_flag=True, help="Methods share their planned memory (share_memory_arenas).")
@click.option(
    "--library", "libraries", multiple=True, metavar="FILE.so", type=PATH, help="Load operators or backends first."
)
@click.option(
    "--dry/--no-dry",
    default=None,
    help="Delegates allocate but do not compute: counted bytes only. The default where the CPU is emulated.",
)
@click.option("--arch", metavar="ARCH", help="Instruction set, aarch64 or x86-64: what the model needs there.")
@click.option(
    "--cpu", metavar="CPU", is_eager=True, callback=_list_cpus, help="CPU model, emulated; list says which there are."
)
@click.option(
    "--compare-cpus", metavar="CPU,CPU,...", help="One table of what the model needs on each: cortex-a76,haswell,host."
)
@click.option(
    "--runtime",
    type=choice(Runtime),
    default=Runtime.NATIVE.value,
    show_default=True,
    help="A clean native process, or executorch.runtime in Python.",
)
@describe_option
@source_option
@executorch_option
@trace_option
@etdump_options
@keep_rusage_option
@stacks_option
@output_options
@export_options("html")
@verbose_option
def command(
    model: Path,
    json: str | None,
    full: bool,
    exact: bool,
    quiet: bool,
    verbose: bool,
    bundle: Path | None,
    redact: bool,
    compare_cpus: str | None,
    preset: str,
    **given: Any,
) -> int:
    """Run a program in a clean process and say who owns every byte of load and inference.

    Floats are random, integers zero, dynamic dimensions at their upper bound, unless --input or --shape says
    otherwise.

    \b
    Example:  etmem profile mlp.pte
              etmem profile llama.pte --shape 0=1x64 --shape 0=1x1 --full
              etmem profile mlp.pte --preset android --json mlp.json
              etmem profile mlp.pte --arch aarch64 --cpu cortex-a76
              etmem profile mlp.pte --compare-cpus cortex-a76,haswell,host
              etmem profile mlp.pte --arch aarch64 --preset wheel,android
    """
    from etmem.api import from_capture
    from etmem.capture.profile import profile
    from etmem.cli.side_by_side import compare, presets

    chosen = presets(preset)
    shown = OutputOptions(json, full, exact, quiet, verbose, bundle, redact)
    several = compare_cpus is not None or len(chosen) > 1
    with progress(f"profiling {model.name}", quiet=quiet or several) as step:
        options = ProfileOptions(
            program=model,
            progress=step,
            load_mode=LoadMode(given.pop("load_mode")),
            preset=chosen[0],
            runtime=Runtime(given.pop("runtime")),
            **given,
        )
        if several:
            return compare(options, compare_cpus, chosen, shown)
        if options.cycles > 1:
            of_one_run(shown, "--cycles")
        captured = profile(options)
        step("reading the trace")
        if options.cycles > 1:
            from etmem.cli.cycles import present_cycles

            return present_cycles(captured, options.cycles, shown)
        result = from_capture(captured, options, keep=bool(wanted()))
    status = present(result, shown, exit_status=captured.exit_status)
    if not quiet and json != "-":
        from etmem.cli.estimate import estimate_line

        line = estimate_line(options, result.summary)
        write_text(f"{line}\n" if line else "")
    if options.etdump is not None and not quiet and json != "-":
        write_text(
            etdump_note(options.etdump, written=captured.exit_status == 0, allocations=options.etdump_allocations)
        )
    return status
