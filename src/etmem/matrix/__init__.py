"""Many programs, each with many options: one table, whatever happens to a single entry."""
