"""Several clusters in one run: which of them, and side by side."""
