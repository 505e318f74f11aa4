"""One canonical form of policy files, with every comment where it belongs."""
