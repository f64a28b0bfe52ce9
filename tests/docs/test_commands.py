"""Every etmem command in the documentation is one that this etmem understands, and every link leads somewhere."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from etmem.cli.main import cli

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "examples").rglob("*.md"))]
BLOCK = re.compile(r"^```\w*\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")


def commands(page: Path) -> Iterator[str]:
    """The lines of code blocks that run etmem, without their comments; no synopses."""
    for block in BLOCK.findall(page.read_text(encoding="utf-8")):
        for line in block.replace("\\\n", " ").splitlines():
            for part in re.split(r"&&|;|\|", line):
                words = _words(part)
                if words[:1] == ["etmem"] and len(words) > 1 and not {"...", "VERB"} & set(words):
                    yield shlex.join(words[1:])


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text, comments=True)
    except ValueError:  # a quote in a line of another language
        return []


CASES = [pytest.param(page, line, id=f"{page.relative_to(ROOT)}: {line}") for page in PAGES for line in commands(page)]


def test_there_are_commands() -> None:
    assert len(CASES) > 40


@pytest.mark.parametrize(("page", "line"), CASES)
def test_the_command_is_understood(page: Path, line: str) -> None:
    """Its verb and options exist; files need not."""
    verb, *arguments = shlex.split(line)
    context = click.Context(cli)
    command = cli.get_command(context, verb)
    assert command is not None, verb
    command.make_parser(click.Context(command)).parse_args(list(arguments))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files(page: Path) -> None:
    targets = LINK.findall(BLOCK.sub("", page.read_text(encoding="utf-8")))
    missing = [target for target in targets if not (page.parent / target).exists()]
    assert not missing
