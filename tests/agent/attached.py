"""Runs libraries of routes in this interpreter, a trace for each: FOLDER LIBRARY ..."""

import ctypes
import sys
from pathlib import Path

import etmem
from etmem.capture import build

folder, *libraries = map(Path, sys.argv[1:])
agent = ctypes.CDLL(str(build.agent()))
api = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(agent, "etmem_api_v1")))
for path in libraries:
    library = ctypes.CDLL(str(path))
    with etmem.trace(folder / f"{path.parent.name}.etmem"):
        library.run_route(api)
