"""``etmem explain WORD``."""

from __future__ import annotations

import json as json_
from dataclasses import asdict

import click

from etmem.cli.console import text_width, write_file, write_text
from etmem.cli.parameters import json_option
from etmem.report.explain import entries, find, render, render_index


@click.command(name="explain")
@click.argument("words", metavar="[WORD]", nargs=-1)
@json_option
def command(words: tuple[str, ...], json: str | None) -> None:
    """What a line, a category, an issue or a finding of a report means, and what to do about it.

    Without a word it lists all of them.

    \b
    Example:  etmem explain double_weights
              etmem explain packed weights
    """
    found = [find(" ".join(words))] if words else list(entries().values())
    if json is not None:
        data = [asdict(entry) for entry in found]
        write_file(json_.dumps(data[0] if words else data, indent=2) + "\n", json)
    if json != "-":
        write_text(render(found[0], text_width()) if words else render_index(text_width()))
