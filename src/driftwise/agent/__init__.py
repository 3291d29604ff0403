"""Live use: decisions, rewards, clocks, snapshots, explanations and the drift meter (docs/contract.md#ticks)."""

from driftwise.agent.agent import Agent
from driftwise.agent.record import Decision
from driftwise.ledger import Verdict

__all__ = ["Agent", "Decision", "Verdict"]
