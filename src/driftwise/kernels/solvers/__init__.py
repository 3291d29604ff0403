"""Small programs that are solved inside a round: estimates, projections, optimistic points. They depend on atoms
only."""
