"""A study: replicas, executors, and the folder that keeps what they give."""
