"""Machine code of the live entries, a module a level of x86-64: made by release/machine.py, present in wheels alone."""
