"""model × memory × rule, and the names that the literature gives to its points."""
