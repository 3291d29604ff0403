"""Evidence: our own policies on the real sets of `driftwise.lab.sets`, with controls that must not win."""
