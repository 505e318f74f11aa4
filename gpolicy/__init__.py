"""Policy as code for Ganeti clusters."""

__version__ = "1.0.0"
