"""Graphs as files hold them: one reader for each format, and what they have in common."""
