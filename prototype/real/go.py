
import sys, numpy as np, auto, time
S="elec2 airports bikes flights prompts prices retail capital tafeng".split()
OLD=dict(tafeng=.1629,retail=.1222,capital=.8809,prices=.8385,elec2=.8809,airports=.7845,bikes=.8671,flights=.7973,prompts=.9318)
INF=float('inf')
def row(tag, draws=2, sets=S, lanes={}, clicks=False, **kw):
    t=time.time(); out=[]
    for s in sets:
        v=[auto.real(s,k,auto.params(**kw),auto.lanes(**lanes),clicks)[0] for k in range(draws)]
        out.append(np.mean(v)-OLD[s])
    print(f"{tag:28s}", ' '.join(f"{s} {o:+.4f}" for s,o in zip(sets,out)), f"| sum {sum(out):+.4f} | {time.time()-t:.0f} s", flush=True)
