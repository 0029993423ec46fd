"""Agents on a graph, each with a model of its own: algorithms, kernels, and their replay."""
