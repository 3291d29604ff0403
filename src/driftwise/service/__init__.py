"""Decisions over HTTP: an answer means it is on disk, and anyone can recompute it (PRODUCT.md 6)."""
