"""Losses, exact solvers, algorithms and their kernels: events are replayed here. Knows nothing of SimPy."""
