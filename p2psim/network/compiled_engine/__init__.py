"""The compiled engine, for networks in which messages take no time."""
