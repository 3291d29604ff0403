"""Evidence: our own policies on the real sets of `driftwise.data.sets`, with controls that must not win."""
