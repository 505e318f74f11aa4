"""The reference pages (docs/reference/) and the man pages, written from the code itself."""
