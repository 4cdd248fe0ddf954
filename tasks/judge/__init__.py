"""Turn the audit report into a verdict, and charge the ledger."""
