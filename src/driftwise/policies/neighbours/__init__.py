"""Algorithms of related papers that no kernel plays: policies in plain Python with start, choose and learn."""
