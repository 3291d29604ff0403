"""Repeats the experiments of related papers and compares the results with the published numbers."""
