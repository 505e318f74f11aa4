"""GP83x: several policies checked together."""
