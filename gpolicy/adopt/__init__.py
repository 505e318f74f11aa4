"""Adopt: write the policy that a cluster has now."""

from gpolicy.adopt.adopting import Adopted, adopt
from gpolicy.adopt.writing import write_adopted, write_files
from gpolicy.adopt.written import LeftOut

__all__ = ["Adopted", "LeftOut", "adopt", "write_adopted", "write_files"]
