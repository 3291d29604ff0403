"""full.py SET trials out.json [key=value]: auto.py on all kinds of a set; rows after each trial."""
import os
os.environ["OMP_NUM_THREADS"]="1"
import sys, json, math, time
from pathlib import Path
import numpy as np
here=Path(__file__).parent; sys.path[:0]=[str(here),str(here.parent/"bench")]
import base, products, auto
which,N,out=sys.argv[1],int(sys.argv[2]),here/"rows"/sys.argv[3]; P=auto.params(**{k:float(v) for k,v in (a.split("=") for a in sys.argv[4:])}); ln=auto.lanes()
kept=json.loads((here/("base.json" if which=="bench" else f"base_{which}.json")).read_text())
todo=list(base.kinds()) if which=="bench" else list(base.extra(which)); rows={}; b=time.time()
def rep(q):
    L,V=[],[]
    for r,a,c in q:
        a,c=np.array(a),np.array(c); L.append(math.log((a.mean()+40)/(c.mean()+40))); inf=a/(a.mean()+40)-c/(c.mean()+40); V.append(inf.var(ddof=1)/len(a) if len(a)>1 else 0)
    m=math.exp(np.mean(L)); return f"{m:.3f} ± {m*math.sqrt(sum(V))/len(L):.3f} ({len(L)})" if L else "-"
for t in range(N):
    for name,draw,r in todo:
        if str(t) not in kept.get(name,{}): continue
        s=draw(t,6000); dl=products.DELAYS[name.split("/")[1]](t) if which in ("tune","kept") else None
        x=auto.run(np.ascontiguousarray(s.arms,dtype=float),np.ascontiguousarray(s.means,dtype=float),np.ascontiguousarray(s.rewards,dtype=float),r,t,P,ln,dl)
        q=rows.setdefault(name,(r,[],[])); q[1].append(x); q[2].append(kept[name][str(t)][0])
    out.write_text(json.dumps(rows))
    txt=f"## auto {' '.join(sys.argv[1:])} | trials {t+1} | all {rep(rows.values())} | {time.time()-b:.0f} s\n"
    for r in ("values","clicks"):
        for h in ("","seen/","unseen/"):
            q=[v for k,v in rows.items() if v[0]==r and k.startswith(h)]
            if q: txt+=f"{r} {h or 'all'}: {rep(q)}; "
        ks={k:(np.mean(v[1])+40)/(np.mean(v[2])+40) for k,v in rows.items() if v[0]==r}
        w=sorted(ks,key=ks.get)[::-1]; txt+=f">1.5: {sum(x>1.5 for x in ks.values())}, >1.2: {sum(x>1.2 for x in ks.values())}, median {np.median(list(ks.values())):.3f}; worst "+", ".join(f"{k.split('/')[1]} {ks[k]:.2f}" for k in w[:16])+"; best "+", ".join(f"{k.split('/')[1]} {ks[k]:.2f}" for k in w[::-1][:5])+"\n"
    print(txt,flush=True); open(here/"LOG.md","a").write(txt)
