"""The paper's experiments, their results on disk, and their pictures."""
