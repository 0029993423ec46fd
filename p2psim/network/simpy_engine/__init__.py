"""The engine on SimPy, which makes the events of every network."""
