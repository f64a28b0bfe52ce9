"""C++ names as their authors wrote them, by the C++ runtime's own function where there is one."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache

_LIBRARY = "libstdc++.so.6"


@cache
def demangle(name: str) -> str:
    """The name itself where it is no C++ name, or where this machine has no C++ runtime."""
    if not name.startswith("_Z"):
        return name
    function = _function()
    return (function(name) if function is not None else None) or name


@cache
def _function() -> Callable[[str], str | None] | None:
    try:
        library = ctypes.CDLL(_LIBRARY)
        call, free = library["__cxa_demangle"], ctypes.CDLL(None).free
    except (OSError, AttributeError):
        return None
    call.restype = ctypes.c_void_p
    call.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int)]
    free.argtypes = [ctypes.c_void_p]

    def name_of(name: str) -> str | None:
        status = ctypes.c_int()
        text = call(name.encode(), None, None, ctypes.byref(status))
        if not text:
            return None
        try:
            return ctypes.string_at(text).decode("utf-8", "replace")
        finally:
            free(text)

    return name_of
