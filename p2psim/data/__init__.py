"""Where records come from, and how they are made fit for private learning and divided among owners."""
