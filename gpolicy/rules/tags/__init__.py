"""GP5xx: tags."""
