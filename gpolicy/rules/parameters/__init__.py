"""GP1xx: parameters of the cluster, of groups and of nodes."""
