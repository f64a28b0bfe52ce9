"""``etmem``: the verbs, loaded when they are asked for, and what becomes of errors."""

from __future__ import annotations

import os
import sys
import tempfile
import traceback
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import NoReturn

import click

from etmem.cli.exits import FAILURE, INTERRUPTED, USAGE
from etmem.model.errors import EtmemError

DEBUG = "ETMEM_DEBUG"

VERBS = {
    "profile": "Run a .pte and say who owns every byte of load and inference.",
    "run": "The same for any command, Python or native: etmem run -- CMD ...",
    "plan": "What a .pte will need, from the file alone: arenas, pools, an estimate, a verdict.",
    "report": "Any report from a trace.",
    "import": "Owners and categories of a heap profile of heapprofd's or pprof's, sampled.",
    "matrix": "Many programs, every combination of options, one table.",
    "diff": "What changed from one run, or one program, to another.",
    "check": "Whether a run keeps to a budget of bytes.",
    "verify": "Whether a bundle is whole.",
    "explain": "What a line, an issue or a finding means, and what to do.",
    "doctor": "What works on this machine, and why not.",
}
"""Short help by verb, so that --help imports none of them."""
_MODULES = {"import": "import_profile"}
"""Where the verb is a word of Python's."""


class Verbs(click.Group):
    """Verbs in the order of use, each a module of its own."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 -- click's signature
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in VERBS:
            return None
        command: click.Command = import_module(f"etmem.cli.{_MODULES.get(cmd_name, cmd_name)}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """``etmem profile a.pte b.pte --matrix FILE`` is ``etmem matrix``: options stand in the file then."""
        if args[0] == "profile" and any(word.partition("=")[0] == "--matrix" for word in args):
            args = ["matrix", *args[1:]]
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Verbs"):
            formatter.write_dl(list(VERBS.items()))


@click.group(cls=Verbs, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--version", is_flag=True, help="Print etmem's version.")
@click.pass_context
def cli(ctx: click.Context, version: bool) -> None:
    """A memory profiler for ExecuTorch: who owns every byte of load and inference.

    \b
    Example:  etmem profile model.pte
              etmem profile model.pte --full --json model.json
    \b
    Exit codes:  0 ok, 1 failure, 2 usage, 3 over budget, 4 a printed figure is wrong or missing.
    """
    if version:
        from etmem import __version__

        click.echo(f"etmem {__version__}")
    elif ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def main() -> NoReturn:
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """The exit code of a command line. Every error becomes one line and a hint on stderr."""
    try:
        code = cli.main(args=list(arguments), prog_name="etmem", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except click.ClickException as error:
        return _say(error.format_message(), _help_hint(error), USAGE)
    except EtmemError as error:
        return _say(error.message, error.hint, error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        return _say("interrupted", "", INTERRUPTED)
    except BrokenPipeError:
        # The reader of stdout has gone (head, a pager). Nothing is left to say, and the interpreter's own flush
        # at exit would print a traceback.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILURE
    except Exception as error:  # noqa: BLE001 -- the last line of defence
        return _crash(error)


def _help_hint(error: click.ClickException) -> str:
    context = error.ctx if isinstance(error, click.UsageError) else None
    return f"{context.command_path if context else 'etmem'} --help"


def _say(message: str, hint: str, code: int) -> int:
    text = " ".join(message.split())
    sys.stderr.write(f"etmem: error: {text}\n" if code != INTERRUPTED else f"etmem: {text}\n")
    if hint:
        sys.stderr.write(f"hint: {' '.join(hint.split())}\n")
    return code


def _crash(error: Exception) -> int:
    """An error of ours: the traceback goes to a file, which is what a bug report needs."""
    if os.environ.get(DEBUG) == "1":
        raise error
    what = f"{type(error).__name__}: {error}"
    try:
        descriptor, name = tempfile.mkstemp(prefix="etmem-crash-", suffix=".log")
        with Path(name).open("w", encoding="utf-8", errors="backslashreplace") as log:
            os.close(descriptor)
            log.write(f"{sys.argv}\n{sys.version}\n{''.join(traceback.format_exception(error))}")
        return _say(f"internal error, {what[:200]}", f"the details are in {name}; please report it", FAILURE)
    except OSError:
        return _say(f"internal error, {what[:200]}", f"{DEBUG}=1 prints the details; please report it", FAILURE)
