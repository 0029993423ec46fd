"""What algorithms will reach, from second moments of the records alone: exact where the iterates are linear."""
