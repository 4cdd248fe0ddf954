"""The steps of the flows, one folder for each: Prefect tasks, and the functions that they call.

Tasks pass ids and settings to each other, never rows.
"""
