"""Option types and options that verbs share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

import click

PATH = click.Path(path_type=Path, readable=False)
"""Not checked here: what reads the file says better what is wrong with it."""


def choice(kind: type[StrEnum]) -> click.Choice[str]:
    return click.Choice([member.value for member in kind])


json_option = click.option("--json", metavar="FILE", help="Write the result as JSON; - for stdout, without the text.")
dry_option = click.option("--dry", is_flag=True, help="Delegates allocate but do not compute: counted bytes only.")
describe_option = click.option(
    "--describe", multiple=True, metavar="FILE.toml", type=PATH, help="What is known of a delegate: docs/delegates.md."
)
source_option = click.option(
    "--source", "sources", multiple=True, metavar="NAME", help="Ask this while it runs: cgroup, or a package's."
)
executorch_option = click.option(
    "--executorch", metavar="PREFIX", type=PATH, help="An ExecuTorch installation other than this Python's."
)
trace_option = click.option("--output", "-o", metavar="FILE", type=PATH, help="The trace. [default: NAME.etmem]")
keep_rusage_option = click.option(
    "--keep-rusage", is_flag=True, help="Do not reset the kernel's high water: ru_maxrss stays right, RSS peaks do not."
)
stacks_option = click.option(
    "--stacks", "all_stacks", is_flag=True, help="Record the call stack of every allocation inside a phase."
)
verbose_option = click.option("--verbose", "-v", is_flag=True, help="Show the program's whole log behind the report.")
