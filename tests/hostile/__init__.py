"""Hostile input: states, calls and surroundings that mean harm, or might as well."""
