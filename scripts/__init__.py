"""Tools of the repository: what generates, checks, measures and tries gpolicy."""
