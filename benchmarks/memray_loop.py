"""The loop of malloc_loop.c inside Python, where memray can trace it: LIBRARY PAIRS."""

import ctypes
import sys

library = ctypes.CDLL(sys.argv[1])
library.run_pairs.restype = ctypes.c_double
print(f"{library.run_pairs(ctypes.c_long(int(sys.argv[2]))):.2f}")
