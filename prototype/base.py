"""Regrets of today's Auto (this clone's src), once a kind and trial: proto/base.json {kind: {trial: [regret, s]}}."""
import os
for k in ("OMP_NUM_THREADS","OPENBLAS_NUM_THREADS"): os.environ[k]="1"
import sys, json, time
from pathlib import Path
here = Path(__file__).parent
sys.path[:0] = [str(here), str(here.parent/"bench")]
import default, default_seen
import driftwise as dw
def kinds(halves=("seen","unseen")):
    for h in halves:
        for name, (draw, rewards, _) in default.registry(h).items():
            if name in default_seen.HORIZONS and h=="seen": continue
            yield f"{h}/{name}", draw, rewards
def extra(which):
    import products
    for name,(draw,rewards,_) in products.REGISTRY.items():
        if products.HALF[name]==which: yield f"{which}/{name}", draw, rewards
def regret(p, s, trial, name):
    import products
    dl = products.DELAYS[name.split("/")[1]](trial) if name.split("/")[0] in ("tune", "kept") else None
    if dl is None: return default.regret(p, s, trial)
    arms, means, got = s
    state, total, fixed, wait, last = p.start(trial), 0.0, dw.ArmSet(arms) if arms.ndim == 2 else None, {}, 0
    for t in range(len(means)):
        X = arms[t] if fixed is None else fixed
        a = int(p.choose(state, X).arm); total += float(means[t].max() - means[t, a])
        wait.setdefault(t + int(dl[t, a]), []).append((t, a))
        for u, b in wait.pop(t, ())[::-1]:
            p.learn(state, arms[u] if fixed is None else fixed, b, float(got[u, b]), ticks=float(t + 1 - last), age=float(t - u)); last = t + 1
    return total
if __name__ == "__main__":
    first, last, what, out = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], here/sys.argv[4]
    todo = list(kinds()) if what=="bench" else list(kinds(("fresh",))) if what=="fresh" else list(extra(what))
    kept = json.loads(out.read_text()) if out.exists() else {}
    for trial in range(first, last):
        for name, draw, rewards in todo:
            row = kept.setdefault(name, {})
            if str(trial) in row: continue
            s = draw(trial, default.HORIZON)
            p = dw.make("Auto", dim=s.arms.shape[-1], **({"link":"logistic"} if rewards=="clicks" else {}))
            t = time.thread_time()
            row[str(trial)] = [regret(p, s, trial, name), time.thread_time()-t]
            out.with_suffix(".new").write_text(json.dumps(kept)); out.with_suffix(".new").replace(out)
        print(trial, flush=True)
