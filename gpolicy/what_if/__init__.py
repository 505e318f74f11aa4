"""A cluster as it would be with other hardware or another load."""
