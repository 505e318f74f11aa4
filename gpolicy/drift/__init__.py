"""What a cluster has that its policy does not declare so: nothing is changed, nothing is planned."""
