"""GP4xx: exclusive storage: the flag itself, physical volumes, spindles, dedicated nodes."""
