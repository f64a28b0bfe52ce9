"""XNNPACK's serialized graph as data, and what it will allocate."""
