"""A site's part in a common release: agree on a fit, send sanitized rows, attack the pool."""
