"""Random bits of a run, all derived from one secret."""
