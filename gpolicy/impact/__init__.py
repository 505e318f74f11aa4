"""What a change of policy means for a cluster: the analysis of the state before and after, compared."""
