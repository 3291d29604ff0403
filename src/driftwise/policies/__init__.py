"""model × memory × rule, and the names the literature gives to points of it."""
