"""Work on logs and data: sums of logs, evaluation, real data."""
