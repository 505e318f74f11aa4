"""What gpolicy found and would do, rendered for people and programs."""
