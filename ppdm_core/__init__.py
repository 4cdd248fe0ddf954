"""The mathematics: sanitizers, attacks, metrics and gates. Arrays in, frozen results out."""
