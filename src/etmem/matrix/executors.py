"""Where entries run: processes of this machine, or a Dask cluster."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

from etmem.model.errors import EtmemError, UsageError

LOCAL, DASK = "local", "dask"
_HINT = "give local, local:JOBS or dask://HOST:PORT"


@dataclass(frozen=True)
class Place:
    """``local``, ``local:4``, ``dask://10.0.0.5:8786``."""

    kind: str
    address: str = ""
    jobs: int = 1

    @property
    def remote(self) -> bool:
        """Whether the program's bytes have to travel with the entry."""
        return self.kind == DASK


def parse_place(text: str) -> Place:
    """Raises UsageError."""
    kind, _, rest = text.partition(":")
    if kind == LOCAL:
        # Counted bytes do not depend on what runs beside them; RSS hardly.
        jobs = rest or str(max(1, (os.cpu_count() or 1) // 2))
        if jobs.isdecimal() and int(jobs) > 0:
            return Place(LOCAL, jobs=int(jobs))
    elif kind == DASK and rest.startswith("//") and len(rest) > 2:
        return Place(DASK, address=rest.removeprefix("//"))
    raise UsageError(f"not an executor: {text!r}", _HINT)


@contextmanager
def open_executor(place: Place) -> Iterator[Executor]:
    """A ``concurrent.futures`` executor. Raises EtmemError where the cluster cannot be reached."""
    if place.kind == LOCAL:
        # Each job waits for a process of its own: threads do, and cannot be killed with it.
        pool = ThreadPoolExecutor(place.jobs, "etmem-matrix")
        try:
            yield pool
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
        return
    try:
        from distributed import Client
    except ImportError as error:
        raise UsageError("--executor dask:// needs Dask", "pip install 'etmem[dask]'") from error
    try:
        client = Client(f"tcp://{place.address}", timeout=10)
    except (OSError, TimeoutError) as error:
        raise EtmemError(f"no Dask scheduler answers at {place.address}", "start one with `dask scheduler`") from error
    try:
        yield client.get_executor(pure=False)
    finally:
        client.close()
