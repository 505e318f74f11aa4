"""The declared policy: YAML documents with their places, schemas, and the model they make."""
