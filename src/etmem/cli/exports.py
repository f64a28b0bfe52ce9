"""The options that write a report other than text and summary: one for each line of the registry."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from etmem.report.exports import BY_NAME, EXPORTS, Export

if TYPE_CHECKING:
    from etmem.api import Profile

F = TypeVar("F", bound=Callable[..., Any])
_META = "etmem.exports"


def export_options(*names: str) -> Callable[[F], F]:
    """Options for some exports, or for all. ``write_wanted`` writes what was asked for."""

    def decorate(function: F) -> F:
        chosen = tuple(BY_NAME[name] for name in names) if names else EXPORTS
        for export in reversed(chosen):
            function = _option(export)(function)
        return function

    return decorate


def _option(export: Export) -> Callable[[F], F]:
    def remember(context: click.Context, parameter: click.Parameter, value: str | None) -> None:  # noqa: ARG001
        if value is not None:
            context.meta.setdefault(_META, []).append((export.name, value))

    metavar = "DIR" if export.folder else "FILE"
    return click.option(f"--{export.name}", metavar=metavar, help=export.help, expose_value=False, callback=remember)


def wanted() -> tuple[str, ...]:
    """Which were asked for."""
    exports: list[tuple[str, str]] = click.get_current_context().meta.get(_META, [])
    return tuple(name for name, _ in exports)


def write_wanted(profile: Profile) -> bool:
    """Writes them; whether one of them took stdout."""
    exports: list[tuple[str, str]] = click.get_current_context().meta.get(_META, [])
    if not exports:
        return False
    from etmem.report.exports import render, write

    opened = profile.view()
    for name, path in exports:
        if path == "-" and not BY_NAME[name].folder:
            click.echo(render(name, opened), nl=False)
        else:
            write(name, opened, Path(path))
    return any(path == "-" for _, path in exports)
