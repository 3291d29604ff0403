"""Figures, tables and pages in one style."""
