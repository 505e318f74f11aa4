"""The settings file of a repository, and the clusters that it names."""
