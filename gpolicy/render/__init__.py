"""The steps of a plan as a shell script."""
