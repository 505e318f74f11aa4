"""One comment on a pull or merge request that is kept up to date: `gpolicy post`."""
