"""The wire: what is asked and answered, every error by its code, and the description of both for other programs."""
