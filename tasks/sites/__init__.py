"""A site's part in a common release: agree on a fit, send it, judge the whole."""
