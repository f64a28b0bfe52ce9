"""The terminal: progress on stderr, its width, and writing results. Nothing else knows rich."""

from __future__ import annotations

import os
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from etmem.capture.options import Progress, silent
from etmem.model.errors import EtmemError, reason

SHOW_AFTER_SECONDS = 1.0
MIN_WIDTH, MAX_WIDTH = 80, 120


def text_width() -> int:
    """Eighty columns unless a wider terminal reads along: a pipe gets the same bytes everywhere."""
    if not sys.stdout.isatty():
        return MIN_WIDTH
    return max(MIN_WIDTH, min(MAX_WIDTH, shutil.get_terminal_size().columns))


@contextmanager
def progress(first: str, *, quiet: bool) -> Iterator[Progress]:
    """A line that says what is going on, once it takes over a second; on a terminal only."""
    if quiet or not sys.stderr.isatty():
        yield silent
        return
    status = _Status(first)
    try:
        yield status.step
    finally:
        status.stop()


class _Status:
    """Shows rich's spinner when its time has come; short runs neither see nor import it."""

    def __init__(self, first: str) -> None:
        self._text = first
        self._lock = threading.Lock()
        self._spinner: object | None = None
        self._stopped = False
        self._timer = threading.Timer(SHOW_AFTER_SECONDS, self._show)
        self._timer.daemon = True
        self._timer.start()

    def step(self, text: str) -> None:
        with self._lock:
            self._text = text
            if self._spinner is not None:
                self._spinner.update(_plain(text))  # type: ignore[attr-defined]

    def stop(self) -> None:
        self._timer.cancel()
        with self._lock:
            self._stopped = True
            if self._spinner is not None:
                self._spinner.stop()  # type: ignore[attr-defined]

    def _show(self) -> None:
        from rich.console import Console

        with self._lock:
            if self._stopped:
                return
            # rich itself honours NO_COLOR.
            status = Console(stderr=True, highlight=False).status(_plain(self._text), spinner="line")
            status.start()
            self._spinner = status


def _plain(text: str) -> str:
    """Rich's markup would eat brackets: ``XnnpackBackend[0]``."""
    from rich.markup import escape

    return escape(text)


def write_text(text: str) -> None:
    click.echo(text, nl=False)


def write_report(text: str) -> None:
    """In colour on a terminal that shows some, unless NO_COLOR asks for none (no-color.org)."""
    colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    if colour:
        from etmem.report.color import colored

        text = colored(text)
    write_text(text)


def write_file(text: str, path: str) -> None:
    """To a file, or to stdout for ``-``. A file is replaced as a whole or not at all."""
    if path == "-":
        write_text(text)
        return
    target = Path(path)
    scratch = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        scratch.write_text(text, encoding="utf-8")
        scratch.replace(target)
    except OSError as error:
        scratch.unlink(missing_ok=True)
        raise EtmemError(
            f"cannot write {path}: {reason(error)}", "give a file in a folder that can be written"
        ) from error


def write_error(text: str) -> None:
    click.echo(text, err=True)
