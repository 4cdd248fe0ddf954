"""The centre of a common release: agree on a fit, pool the rows of the sites, publish."""
