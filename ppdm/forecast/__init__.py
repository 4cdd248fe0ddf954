"""What a release will do, before it is made: `ppdm check` says it."""
