"""The privacy calculator, ``p2psim account``: what a list of releases costs, and who learns what on a graph."""
