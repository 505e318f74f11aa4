"""GP4xx: exclusive storage: physical volumes, spindles, dedicated nodes."""
