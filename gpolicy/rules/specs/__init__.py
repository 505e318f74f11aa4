"""GP2xx: specs, the min/max pairs of an instance policy."""
