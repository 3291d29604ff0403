"""The dashboard, for people: what the streams of a service do now, and why one decision was made.

reading (what the log says), track (the state over time, learned from the log),
markup and charts (HTML and SVG), pages (what is shown), web (who may see it, and how it stays live).
"""
