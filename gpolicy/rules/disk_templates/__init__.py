"""GP3xx: disk templates."""
