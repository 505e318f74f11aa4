"""Policy as code for Ganeti clusters."""

__version__ = "0.1.0"
