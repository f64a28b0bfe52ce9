"""A summary without paths, user and host names: what can be sent to someone else."""

from __future__ import annotations

import getpass
import os
import re
import socket
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path, PurePath

from etmem.model.summary import Summary

_PATH = re.compile(r"(?<![\w.~])(?:~|\.{1,2})?(?:/[^\s/'\":,;()]+)+/?")
"""A path inside a sentence, as far as it has no blanks; longer ones are known and go first."""
USER, MACHINE = "<user>", "<host>"


def redact(summary: Summary, names: Iterable[tuple[str, str]] | None = None) -> Summary:
    """Files keep their names and lose their folders; user and host names become placeholders.

    Only texts that come from the machine are touched: a user whose name is a word of the summary's own
    vocabulary cannot spoil it. ``names`` are (name, placeholder) pairs, by default those of this machine.
    """
    cleaner = _Cleaner(summary, tuple(machine_names() if names is None else names))
    environment = summary.environment
    return replace(
        summary,
        environment=replace(
            environment, command=tuple(cleaner.argument(word) for word in environment.command),
            platform=cleaner.words(environment.platform), allocator=cleaner.text(environment.allocator),
        ),
        target=replace(summary.target, backend_options=tuple(map(cleaner.argument, summary.target.backend_options))),
        programs=tuple(replace(one, path=one.path and cleaner.path(one.path)) for one in summary.programs),
        findings=tuple(replace(one, advice=cleaner.text(one.advice)) for one in summary.findings),
        issues=tuple(
            replace(
                one, message=cleaner.text(one.message), hint=cleaner.text(one.hint),
                detail={key: cleaner.data(value) for key, value in one.detail.items()},
            )
            for one in summary.issues
        ),
    )  # fmt: skip


def machine_names() -> list[tuple[str, str]]:
    """The names of this user and this machine."""
    found = [(Path.home().name, USER), (socket.gethostname(), MACHINE), (os.uname().nodename, MACHINE)]
    # There may be no name for this user id: then there is none to take out.
    with suppress(KeyError, OSError):
        found.append((getpass.getuser(), USER))
    return [(name, word) for name, word in dict.fromkeys(found) if len(name) > 1]


class _Cleaner:
    def __init__(self, summary: Summary, names: tuple[tuple[str, str], ...]) -> None:
        paths = [program.path for program in summary.programs if program.path]
        paths += [word for word in summary.environment.command if "/" in word]
        # A folder before what lies in it would leave the rest of the path behind.
        self._known = sorted({path for path in paths if "/" in path}, key=len, reverse=True)
        self._names = sorted(names, key=lambda pair: -len(pair[0]))

    def path(self, text: str) -> str:
        return self.words(PurePath(text).name)

    def argument(self, word: str) -> str:
        """One argument of a command: a path, ``--option=path`` or ``backend:key=path``."""
        head, equals, tail = word.partition("=")
        if equals and "/" in tail:
            return f"{self.text(head)}={self.path(tail)}"
        return self.path(word) if "/" in word else self.words(word)

    def text(self, text: str) -> str:
        for path in self._known:
            text = text.replace(path, PurePath(path).name)
        return self.words(_PATH.sub(lambda match: PurePath(match[0]).name, text))

    def words(self, text: str) -> str:
        for name, placeholder in self._names:
            text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", placeholder, text)
        return text

    def data(self, value: object) -> object:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list | tuple):
            return [self.data(item) for item in value]
        if isinstance(value, dict):
            return {key: self.data(item) for key, item in value.items()}
        return value
