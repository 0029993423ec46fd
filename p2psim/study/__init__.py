"""Scenarios, cells, replicas, executors and storage: what ties the other packages together."""
