"""The compiled engine: C sources, how they are built and loaded, and how a cluster gets there and back."""
