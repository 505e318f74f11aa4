"""How a policy fits one cluster: the groups and nodes that it is about."""
