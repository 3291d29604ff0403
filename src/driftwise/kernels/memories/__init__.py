"""Memories: the weight of an observation of a given age, as the three phases of learning carry it out.

An observation born at time s counts at time t with weight 1 (Keep), γ^(t-s) (Fade, Trend), 1 while t-s < length
(Window), 1 if s lies after the last multiple of the period up to t (Restart). Each memory is a file of pieces:

    run_      phase one: time passes; what is too old goes. Returns by what the sums still have to fade.
    accepts   whether an observation of an age still counts
    weight    the weight that an accepted observation enters with
    absorb_   phase two: the sums fade by that factor and take one observation in
    turn_     phase three: what is due exactly now

A file says only what differs from keep.py. Its CODE is the flag that `any` knows it by, and phases.py makes whole
lessons of these pieces: for one memory, or for any.
"""
