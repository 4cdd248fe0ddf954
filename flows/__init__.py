"""The flows put tasks in order and hold nothing else."""
