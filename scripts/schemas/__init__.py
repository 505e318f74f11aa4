"""The JSON Schemas of the kinds of documents, made from tables: what `scripts/generate` writes to `schemas/`."""
