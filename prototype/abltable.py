"""abltable.py: ablation.txt from r4.npz (H and its rows, 20 trials, one call of the second machine)."""
import sys, numpy as np
from math import exp, log, sqrt
from pathlib import Path
here=Path(__file__).parent; z=np.load(here/"r4.npz")
kk=[str(k) for k in z["kinds"]]; nm=[k.split("/",1)[1] for k in kk]; rw=z["rw"]; runs={str(t):z["res"][:,:,j] for j,t in enumerate(z["tags"])}
def lr(a,b):
    L,V=np.full(len(kk),np.nan),np.full(len(kk),np.nan)
    for i in range(len(kk)):
        x,y=a[i],b[i]; ok=~np.isnan(x)&~np.isnan(y); x,y=x[ok],y[ok]
        if len(x)>1: L[i]=log((x.mean()+40)/(y.mean()+40)); V[i]=(x/(x.mean()+40)-y/(y.mean()+40)).var(ddof=1)/len(x)
    return L,V
NAMES=dict(trends="trend lanes",levels="level lanes",keep="offset kept for ever (forgets with θ)",contrast="contrast",looks="looks",far="looks as often as could be gained (always as often as .5/√t)",now="noise of now (values)",psi="index ψ (√(1 + .45 log(1 + min(t, N))) instead)",BL="ψ = √(½ log(1 + u)) (Brezzi and Lai's approximation instead)",nu="Student density (ν = 10⁶; values)",taking="taking over",least="least part of the spread (values)",odds="prior by log odds seen (clicks)",tilt="tilt (+½ a doubling of memory)",evidence="evidence (one family, sums of weights)",lev32="level lanes of θ's memory 32",offp="offset of level lanes shown its prior (capped at 10⁴ instead)",age="γ^age of late rewards (8 late kinds)",reach="lanes shorter than the age of rewards do not play (8 late kinds)")
out="""Ablation of H, 20 paired trials a kind, T = 6000, one call of the second machine (20 Nov, 361 s on 16 cores). Kinds: the 166 of seen and unseen of at most 32 features and
6,000 rounds (92 of values, 74 of clicks). Each row: geometric mean of (regret + 40) over that of H on the same streams, ± its standard error; kinds that cost 1.8 or more.
H = flex.py with psim=3 far=.1 offp=1 agew=1 late=1 clip=1e9 short=128 looks=.5 (tilt=.5 trw=.5 believed=3), plain 8 32 128 512 2048 inf, trends 32 128 512 2048, levels (32 512 inf) x (8 32).
The final auto.py is H without tilt, offp and late (rows below), with equal first weights, believed = gap, HID's memory = short, and the looks' chance as one formula: see FINAL.md for its own 20 trials.
Command (in the folder carried: dev.py flex.py products.py latek.py s4.json, pkg = git archive 65b087d src bench):
  SETS="seen unseen tune late" PYTHONUNBUFFERED=1 python3 dev.py s4.json $OUT/r4.npz --deadline 368
Table: python abltable.py (reads r4.npz).

| removed | values | clicks | both | kinds that cost 1.8 or more |
|---|---|---|---|---|
"""
for t,n in NAMES.items():
    L,V=lr(runs[t],runs["H"]); row=f"| {n} "
    for m in (rw=="values",rw=="clicks",rw!=""):
        m=m&~np.isnan(L); k=m.sum(); row+=f"| {exp(L[m].mean()):.3f} ± {exp(L[m].mean())*sqrt(V[m].sum())/k:.3f} " if k else "| – "
    o=[i for i in np.argsort(-L) if not np.isnan(L[i]) and L[i]>log(1.8)]
    out+=row+"| "+(", ".join(f"{nm[i]} {exp(L[i]):.1f} ± {exp(L[i])*sqrt(V[i]):.1f}" for i in o[:6])+(f" and {len(o)-6} more" if len(o)>6 else "") or "none")+" |\n"
(here.parent/"ablation.txt").write_text(out); print(out)
