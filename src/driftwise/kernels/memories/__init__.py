"""Memories: the weight of an observation of a given age, as the three phases of learning carry it out.

An observation born at time s counts at time t with weight 1 (Keep), γ^(t-s) (Fade), 1 while t-s < length
(Window), 1 if s lies after the last multiple of the period up to t (Restart). Each memory is a file of pieces:

    run_      phase one: time passes, and old observations leave. Returns the factor by which the sums still fade.
    accepts   whether an observation of this age still counts
    weight    the weight with which an accepted observation enters
    absorb_   phase two: the sums fade by that factor, and one observation is added
    turn_     phase three: what is due at this tick

phases.py has a Protocol for each, and makes whole lessons of them. A file contains only what differs from keep.py, and
its KIND: the flag and the pieces. any.py lists them, and makes the memory that branches on the flag.
"""
