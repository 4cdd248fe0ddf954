"""What every draw of every record has cost so far."""
