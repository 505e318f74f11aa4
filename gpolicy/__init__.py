"""Policy as code for Ganeti clusters."""

__version__ = "1.0.0"

HOMEPAGE = "https://git.example.org/gpolicy"
