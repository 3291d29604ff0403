"""many.py "trials=2 set=bench rw=values only=X mod=one" "TAG k=v k=v" "TAG2 ..." : several designs on the same streams."""
import os
os.environ["OMP_NUM_THREADS"]="1"
import sys, json, math, time, importlib
from pathlib import Path
import numpy as np
here = Path(__file__).parent
sys.path[:0] = [str(here), str(here.parent/"bench")]
import base, default, products
def main():
    kw = dict(a.split("=",1) for a in sys.argv[1].split()); first, trials, which, only, rw = int(kw.get("first",0)), int(kw.get("trials",2)), kw.get("set","bench"), kw.get("only",""), kw.get("rw","")
    confs=[]
    for a in sys.argv[2:]:
        tag,*rest=a.split(" "); c=dict(x.split("=",1) for x in rest)
        one=importlib.import_module(c.pop("mod",kw.get("mod","one")))
        ln=eval(c.pop("lanes","one.lanes()"),{"one":one,"INF":math.inf})
        confs.append((tag,a,one,one.params(**{k:float(v) for k,v in c.items()}),ln))
    kept = json.loads((here/{"bench":"base.json"}.get(which, f"base_{which}.json")).read_text())
    todo = list(base.kinds()) if which=="bench" else list(base.kinds(("fresh",))) if which=="fresh" else list(base.extra(which))
    rows=[{} for _ in confs]; used=[[] for _ in confs]; begun=time.time()
    for name, draw, rewards in todo:
        if only and only not in name or rw and rw!=rewards or name not in kept: continue
        for trial in range(first, trials):
            if str(trial) not in kept[name]: continue
            s = draw(trial, default.HORIZON)
            dl = products.DELAYS[name.split("/")[1]](trial) if which in ("tune","kept") else None
            for c,(tag,a,one,P,ln) in enumerate(confs):
                t=time.thread_time(); x=one.run(s,rewards,trial,P,ln,dl); used[c].append(time.thread_time()-t)
                r=rows[c].setdefault(name,(rewards,[],[])); r[1].append(x); r[2].append(kept[name][str(trial)][0])
    rep = lambda q: math.exp(np.mean([math.log((np.mean(a)+40)/(np.mean(b)+40)) for _,a,b in q])) if q else math.nan
    (here/"rows").mkdir(exist_ok=True)
    for (tag,a,*_),row,u in zip(confs,rows,used):
        out=f"## {a} | {sys.argv[1]} | all {rep(list(row.values())):.3f} | {1e6*sum(u)/6000/len(u):.0f} us a round, {time.time()-begun:.0f} s\n"
        for r in ("values","clicks"):
            q={k:v for k,v in row.items() if v[0]==r}
            if not q: continue
            ratio={k:(np.mean(v[1])+40)/(np.mean(v[2])+40) for k,v in q.items()}
            worst=sorted(ratio,key=ratio.get)[::-1][:13]; b=sorted(ratio,key=ratio.get)[:5]
            out+=f"{r}: {rep(list(q.values())):.3f} (seen {rep([v for k,v in q.items() if k.startswith('seen')]):.3f}, other {rep([v for k,v in q.items() if not k.startswith('seen')]):.3f}), >1.5: {sum(x>1.5 for x in ratio.values())}, >1.2: {sum(x>1.2 for x in ratio.values())} of {len(ratio)}; worst "+", ".join(f"{k.split('/')[1]} {ratio[k]:.2f} ({np.mean(row[k][2]):.0f})" for k in worst)+"; best "+", ".join(f"{k.split('/')[1]} {ratio[k]:.2f}" for k in b)+"\n"
        print(out); open(here/"LOG.md","a").write(out)
        (here/"rows"/f"{which}-{tag}.json").write_text(json.dumps(row))
main()
