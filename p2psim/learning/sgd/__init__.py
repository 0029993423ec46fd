"""Algorithms that train one model by stochastic gradient steps: on a graph, or with a central learner."""
