"""fast.py "trials=6 rw=values only=X mod=seven" "TAG k=v" ...: variants on cached streams; paired log-ratios to revision 4 with standard errors, and to the first variant."""
import os
os.environ["OMP_NUM_THREADS"]="1"
import sys, json, math, time, importlib
from pathlib import Path
import numpy as np
here=Path(__file__).parent; sys.path[:0]=[str(here)]
kw=dict(a.split("=",1) for a in sys.argv[1].split()); N=int(kw.get("trials",6)); lo=int(kw.get("first",0)); only=kw.get("only",""); rw=kw.get("rw",""); quiet="q" in kw
confs=[]
for a in sys.argv[2:]:
    tag,*rest=a.split(" "); c=dict(x.split("=",1) for x in rest)
    one=importlib.import_module(c.pop("mod",kw.get("mod","seven")))
    ln=eval(c.pop("lanes","one.lanes()"),{"one":one,"INF":math.inf})
    confs.append((tag,a,one,one.params(**{k:float(v) for k,v in c.items()}),ln))
base={}
for f in ("base.json","base_tune.json"): base.update(json.loads((here/f).read_text()))
def load(p): return np.load(p,mmap_mode="r") if False else np.load(p)
rows=[{} for _ in confs]; used=[0.0]*len(confs); nr=0
for name,safe,r in json.loads((here/"cache/list.json").read_text()):
    if rw and r!=rw or only and not any(o in name for o in only.split("|")): continue
    for t in range(lo,N):
        if str(t) not in base.get(name,{}): continue
        f=here/"cache"/safe
        if not (f/f"{t}-rewards.npy").exists(): continue
        A,M,R=(load(f/f"{t}-{w}.npy") for w in ("arms","means","rewards")); dl=load(f/f"{t}-delay.npy") if (f/f"{t}-delay.npy").exists() else None
        if A.shape[-1]>int(kw.get("maxd",16)): continue
        nr+=1
        for c,(tag,a,one,P,ln) in enumerate(confs):
            b=time.thread_time(); x=one.run(A,M,R,r,t,P,ln,dl); used[c]+=time.thread_time()-b
            rows[c].setdefault(name,(r,[],[])); rows[c][name][1].append(x); rows[c][name][2].append(base[name][str(t)][0])
def logs(row): 
    ratio,var={}, {}
    for k,(r,a,b) in row.items():
        a,b=np.array(a),np.array(b); ratio[k]=math.log((a.mean()+40)/(b.mean()+40))
        inf=a/(a.mean()+40)-b/(b.mean()+40); var[k]=inf.var(ddof=1)/len(a) if len(a)>1 else 0
    return ratio,var
first=None
for (tag,a,*_),row,u in zip(confs,rows,used):
    L,V=logs(row); out=f"## {a} | {sys.argv[1]} | {1e6*u/6000/nr:.1f} us\n"
    for r in ("values","clicks"):
        ks=[k for k in row if row[k][0]==r]
        if not ks: continue
        m=np.mean([L[k] for k in ks]); se=math.sqrt(sum(V[k] for k in ks))/len(ks)
        out+=f"{r}: {math.exp(m):.3f} ± {math.exp(m)*se:.3f}"
        if first is not None:
            df=[]; 
            for k in ks:
                a1,b1=np.array(row[k][1]),np.array(first[k][1]); inf=a1/(a1.mean()+40)-b1/(b1.mean()+40)
                df.append((math.log((a1.mean()+40)/(b1.mean()+40)), inf.var(ddof=1)/len(a1) if len(a1)>1 else 0))
            mm=np.mean([x for x,_ in df]); ss=math.sqrt(sum(v for _,v in df))/len(df)
            out+=f" | of the first {math.exp(mm):.3f} ± {math.exp(mm)*ss:.3f}"
            ch=sorted(zip([x for x,_ in df],ks)); 
            out+=" | gains "+", ".join(f"{k.split('/')[1]} {math.exp(x):.2f}" for x,k in ch[:4] if x<-.2)+" | costs "+", ".join(f"{k.split('/')[1]} {math.exp(x):.2f}" for x,k in ch[::-1][:5] if x>.2)
        s=sorted(ks,key=lambda k:-L[k])
        out+="\n   worst "+", ".join(f"{k.split('/')[1]} {math.exp(L[k]):.2f}±{math.exp(L[k])*math.sqrt(V[k]):.2f}" for k in s[:(len(s) if quiet else 14)])+"\n"
    if first is None: first=row
    print(out,flush=True); open(here/"LOG.md","a").write(out)
    (here/"rows"/f"fast-{tag}.json").write_text(json.dumps(row))
