"""What a cluster has now, read from one of several sources into one `ClusterState`."""
