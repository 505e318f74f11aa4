"""The rules, in folders by what they are about: the folder of a family is that of its codes (GP2xx: specs)."""
