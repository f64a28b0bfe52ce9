"""Which allocation routes are seen, how the agent came in, and beside which malloc: docs/reference/coverage.md.

``python -m tests.agent.coverage`` runs every route and writes the page; a test holds it against a run.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from etmem.api import load
from etmem.trace.blocks import blocks
from etmem.trace.reader import read
from etmem.trace.tables import BlockKind
from tests.agent.recording import PROGRAMS, compile_library, compile_program, record

SIZE = 3 * 1024 * 1024 + 4096
ROUTES = PROGRAMS / "routes"
INCLUDE = PROGRAMS.parents[1] / "include"
ATTACHED = Path(__file__).parent / "attached.py"
PAGE = PROGRAMS.parents[2] / "docs/reference/coverage.md"
SOURCES = {path.stem: path for path in sorted(ROUTES.iterdir()) if path.suffix in (".c", ".cpp")}

TITLES = {
    "malloc": "malloc",
    "calloc": "calloc",
    "realloc": "realloc",
    "realloc_shrink": "realloc to less",
    "reallocarray": "reallocarray",
    "posix_memalign": "posix_memalign",
    "aligned_alloc": "aligned_alloc",
    "memalign": "memalign",
    "valloc": "valloc",
    "pvalloc": "pvalloc",
    "strdup": "strdup, inside libc",
    "asprintf": "asprintf, inside libc",
    "operator_new": "C++ operator new",
    "operator_new_aligned": "C++ operator new, aligned",
    "stored_pointer": "a pointer to malloc in static data",
    "dlsym_default": '`dlsym(RTLD_DEFAULT, "malloc")`',
    "libc_malloc": "`__libc_malloc`",
    "tls_destructor": "malloc in a TLS destructor at thread exit",
    "deepbind": "a library opened with RTLD_DEEPBIND",
    "runpath": "a library found only by the caller's RUNPATH",
    "mmap": "mmap",
    "mremap_grow": "mremap that grows",
    "mremap_move": "mremap that moves",
    "mremap_shrink": "mremap that shrinks",
    "sbrk": "sbrk",
    "syscall_mmap": "`syscall(SYS_mmap)`",
}

SEEN = "seen"
UNACCOUNTED = "unaccounted"
KEPT = "malloc's pages"
MAPPINGS = "its mappings"
CRASH = "(crashes without etmem too)"

ALLOCATORS = {"jemalloc": "libjemalloc.so.2", "tcmalloc": "libtcmalloc_minimal.so.4"}
MAPPED = {"mmap", "mremap_grow", "mremap_move", "mremap_shrink", "sbrk", "syscall_mmap"}
"""Routes to mappings; all others make heap blocks."""

FOREIGN = {("pvalloc", "jemalloc")}
"""A call that the allocator does not have: what libc gives, its free does not know."""


@dataclass(frozen=True)
class Route:
    program: Path
    library: Path
    """The same as a shared object, for an interpreter."""


def build(name: str, folder: Path) -> Route:
    place = folder / name
    place.mkdir(exist_ok=True)
    plugin = compile_library(PROGRAMS / "plugin/plugin.c", place / "libplugin.so")
    flags = (f'-DPLUGIN="{plugin}"', f"-Wl,-rpath,{place}", f"-I{INCLUDE}")
    program = compile_program(SOURCES[name], place, *flags)
    compiler = "g++" if SOURCES[name].suffix == ".cpp" else "gcc"
    library = place / "route.so"
    command = (compiler, "-O0", "-shared", "-fPIC", "-o", library, SOURCES[name], *flags, "-lpthread", "-ldl")
    subprocess.run(command, check=True)
    return Route(program, library)


def build_all(folder: Path) -> dict[str, Route]:
    with ThreadPoolExecutor(2) as pool:
        return dict(zip(SOURCES, pool.map(lambda name: build(name, folder), SOURCES), strict=True))


def preloaded(routes: Mapping[str, Route], folder: Path) -> dict[str, str]:
    return {name: _recorded(route, folder, (UNACCOUNTED,)) for name, route in routes.items()}


def attached(routes: Mapping[str, Route], folder: Path) -> dict[str, str]:
    """All routes in one interpreter that was not started under etmem, a trace for each."""
    libraries = [route.library for route in routes.values()]
    subprocess.run([sys.executable, ATTACHED, folder, *libraries], check=True)
    # libc's figures include what was allocated before: nobody can tell it from what was missed.
    return {name: cell(name, folder / f"{name}.etmem", (UNACCOUNTED, KEPT)) for name in routes}


def beside(allocator: str) -> Callable[[Mapping[str, Route], Path], dict[str, str]]:
    """Preloaded with another malloc behind the agent."""

    def column(routes: Mapping[str, Route], folder: Path) -> dict[str, str]:
        with mock.patch.dict(os.environ, {"LD_PRELOAD": ALLOCATORS[allocator]}):
            return {
                name: CRASH if (name, allocator) in FOREIGN else _recorded(route, folder, (UNACCOUNTED, MAPPINGS))
                for name, route in routes.items()
            }

    return column


COLUMNS: dict[str, Callable[[Mapping[str, Route], Path], dict[str, str]]] = {
    "preloaded": preloaded,
    "attached": attached,
    **{f"beside {name}": beside(name) for name in ALLOCATORS},
}


def _recorded(route: Route, folder: Path, otherwise: Iterable[str]) -> str:
    recording = record([route.program], folder)
    assert recording.status == 0, f"{route.program.name} ended with {recording.status}"
    assert recording.trace.header.closed
    assert recording.trace.header.dropped_events == 0
    return cell(route.program.name, recording.path, otherwise)


def cell(name: str, path: Path, otherwise: Iterable[str]) -> str:
    """Seen: one block of the route's size. Else its bytes are in the balance, in the first line that has room."""
    found, _ = blocks(read(path))
    fits = (found.kind != BlockKind.HEAP) == (name in MAPPED)
    sizes = found.bytes[fits & (found.kind != BlockKind.RESERVED)].tolist()
    if SIZE in sizes:
        assert sizes.count(SIZE) == 1
        return SEEN
    balance = load(path).summary.balances[-1]
    lines = {line.line: line.bytes for line in balance.lines}
    assert balance.rss_bytes == sum(lines.values()) + balance.unaccounted_bytes
    kept = lines.get("retained by malloc", 0)
    room = {
        UNACCOUNTED: balance.unaccounted_bytes,
        KEPT: kept + balance.unaccounted_bytes,
        MAPPINGS: lines.get("executorch", 0) + kept + balance.unaccounted_bytes,
    }
    return next(where for where in otherwise if room[where] >= SIZE)


def page(columns: Mapping[str, Mapping[str, str]]) -> str:
    """The page: a row for each route."""
    rows = [("route", *columns), ("---",) * (1 + len(columns))]
    rows += [(title, *(column[name] for column in columns.values())) for name, title in TITLES.items()]
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return f"""# Which allocations are seen

Written by `python -m tests.agent.coverage`, which runs a small program for each route (`native/tests/programs/routes`);
a test holds this page against a run.

- **preloaded**: `etmem run` and `etmem profile`.
- **attached**: `with etmem.trace(...)` in an interpreter that was not started under etmem. A slot that a library filled
  by itself, with `dlsym`, is not one that can be taken.
- **beside jemalloc, tcmalloc**: these are preloaded too (Debian's packages). The issue `other_allocator` names them.

A cell says *{SEEN}* where there is one block with the route's size, and otherwise where its resident bytes stand in the
balance: *{UNACCOUNTED}*; *{KEPT}*, the line `retained by malloc`, which holds whatever was allocated before an
attach; *{MAPPINGS}*, which count as memory of whoever made the allocator ask the system for more.

{table}
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        routes = build_all(Path(name))
        PAGE.write_text(page({title: column(routes, Path(name)) for title, column in COLUMNS.items()}))


if __name__ == "__main__":
    main()
