"""The papers around ours: their experiments again, beside what they published."""
