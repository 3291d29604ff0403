"""The laboratory: how experiments are run, the paper, the field, real data, other packages. No product needs it."""
