"""Small programs solved inside a round: estimates, projections, optimistic points. They know atoms, not policies."""
