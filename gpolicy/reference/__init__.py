"""What there is to know of each word of gpolicy: for `gpolicy explain`, the reference pages and the man pages."""
