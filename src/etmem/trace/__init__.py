"""The trace of one process: its file, raw and packed, and the memory blocks that its events make."""
