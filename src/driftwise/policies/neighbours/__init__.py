"""Algorithms of the papers around ours that no kernel plays: policies of plain Python with start, choose and learn."""
