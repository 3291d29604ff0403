"""Running experiments, and the paper's among them."""
