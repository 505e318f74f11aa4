"""Plans of many clusters, carried out in waves, with one journal of the whole."""
