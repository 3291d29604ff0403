"""driftwise: choosing under drift."""
