"""Kinds of figures: one file each, with a function `draw_NAME`, and a line in `p2psim.core.figures`."""
