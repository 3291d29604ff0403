"""What stands above the agent: sums of logs, evaluation, real data."""
