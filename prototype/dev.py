"""dev.py SPEC.json OUT.npz [--rev4] [--deadline S]: plays variants (and revision 4) on all kinds with paired streams, on all cores.
SPEC: {"mod": "flex", "trials": [first, last], "variants": {tag: {"p": {...}, "lanes": {...}, "trials": n, "only": "tune"}}}"""
import os
for k in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"): os.environ[k] = "1"
import sys, json, time, math, zlib, importlib, multiprocessing as mp
from pathlib import Path
BEGUN = time.time()
here = Path(__file__).parent
os.environ.setdefault("NUMBA_CACHE_DIR", "/tmp/nbc")
sys.path[:0] = [str(here), str(here/"pkg/bench"), str(here/"pkg/src")]
import numpy as np
SPEC = json.loads(Path(sys.argv[1]).read_text())
T = 6000
INF = math.inf
def kinds():
    import default, default_seen, products
    for h in ("seen", "unseen"):
        for name, (draw, r, _) in default.registry(h).items():
            if h == "seen" and name in default_seen.HORIZONS: continue
            yield f"{h}/{name}", draw, r, None
    for name, (draw, r, _) in products.REGISTRY.items():
        if products.HALF[name] == "tune": yield f"tune/{name}", draw, r, products.DELAYS[name]
    import latek
    for name, (draw, r, _) in latek.REGISTRY.items(): yield f"late/{name}", draw, r, latek.DELAYS[name]
def islate(n): return n.startswith('late/') or '/late_' in n
def fix(l): return {k: ([INF if x == "inf" else (tuple(INF if y == "inf" else y for y in x) if isinstance(x, list) else x) for x in v] if isinstance(v, list) else v) for k, v in l.items()}
def confs():
    out = []
    for tag, c in SPEC["variants"].items():
        one = importlib.import_module(c.get("mod", SPEC["mod"]))
        P = one.params(**c.get("p", {})); ln = one.lanes(**fix(c.get("lanes", {})))
        out.append((tag, c, one, P, ln))
    return out
def worker(task):
    i, t = task
    name, draw, r, dl = KINDS[i]
    s = draw(t, T); d = dl(t) if dl else None
    A, M, R = (np.ascontiguousarray(x, dtype=float) for x in s)
    out, used = [], []
    for tag, c, one, P, ln in CONFS:
        if (c.get("only", "") == "late") > islate(name) or (t >= c.get("trials", 99) and not islate(name)) or c.get("rw", r) != r or c.get("narrow") and (A.shape[-1] > 32 or name.split("/")[0] not in ("seen", "unseen")): out.append(math.nan); used.append(0.0); continue
        b = time.thread_time(); out.append(one.run(A, M, R, r, t, P, ln, d)); used.append(time.thread_time()-b)
    return i, t, out, used, zlib.crc32(R.tobytes())
def regret4(task):
    i, t = task
    import default, driftwise as dw
    name, draw, r, dl = KINDS[i]
    s = draw(t, T); d = dl(t) if dl else None
    p = dw.make("Auto", dim=s.arms.shape[-1], **({"link": "logistic"} if r == "clicks" else {}))
    b = time.thread_time()
    if d is None: x = default.regret(p, s, t)
    else:
        arms, means, got = s
        state, x, fixed, wait, last = p.start(t), 0.0, dw.ArmSet(arms) if arms.ndim == 2 else None, {}, 0
        for u in range(len(means)):
            X = arms[u] if fixed is None else fixed
            a = int(p.choose(state, X).arm); x += float(means[u].max() - means[u, a])
            wait.setdefault(u + int(d[u, a]), []).append((u, a))
            for w, c in wait.pop(u, ())[::-1]:
                p.learn(state, arms[w] if fixed is None else fixed, c, float(got[w, c]), ticks=float(u + 1 - last), age=float(u - w)); last = u + 1
    return i, t, x, time.thread_time()-b
def warm(flag):
    try:
        for w in ("unseen/fresh_news", "seen/drift: still, S=1", "seen/drift: still", "seen/one_hot_walk", "seen/items_one_hot_forty", "tune/late_all", "tune/late_conversions_c", "seen/wide_features", "seen/still_d50"):
            for i, k in enumerate(KINDS):
                if k[0] == w: regret4((i, 0)); print("warm", w, round(time.time()-BEGUN), flush=True)
    finally: Path(flag).write_text("done")
KINDS = list(kinds())
if __name__ == "__main__":
    out = Path(sys.argv[2]); deadline = float(sys.argv[sys.argv.index("--deadline")+1]) if "--deadline" in sys.argv else 1e9
    rev4 = "--rev4" in sys.argv; n = int(os.environ.get("PROCS", os.cpu_count()))
    ctx = mp.get_context("fork")
    pw = None
    if rev4: pw = ctx.Process(target=warm, args=("/tmp/warm.flag",)); Path("/tmp/warm.flag").unlink(missing_ok=True); pw.start()
    CONFS = confs()
    i0 = next(i for i, k in enumerate(KINDS) if k[2] == "values"); mods = {}
    save, SAVE = None, CONFS
    CONFS = list({id(c[2]): c for c in SAVE}.values()); SPEC0 = dict(CONFS[0][1])
    for j in (i0, next(i for i, k in enumerate(KINDS) if k[2] == "clicks"), next(i for i, k in enumerate(KINDS) if k[3])): worker((j, 0))
    CONFS = SAVE
    print("compiled", round(time.time()-BEGUN), "s", len(KINDS), "kinds", len(CONFS), "variants", n, "procs", flush=True)
    a, b = SPEC["trials"]
    size = {i: float(os.environ.get("X", 0)) for i in range(len(KINDS))}
    res = np.full((len(KINDS), 20, len(CONFS)), np.nan); cpu = np.zeros(len(CONFS)); crc = np.zeros((len(KINDS), 20), np.int64); r4 = np.full((len(KINDS), 20), np.nan); c4 = 0.0; per = np.zeros(len(KINDS))
    def keep(): print("saved", round(time.time()-BEGUN), flush=True); np.savez_compressed(out, res=res, cpu=cpu, crc=crc, r4=r4, per=per, kinds=np.array([k[0] for k in KINDS]), rw=np.array([k[2] for k in KINDS]), tags=np.array([c[0] for c in CONFS]))
    tasks = [(i, t) for t in range(a, b) for i in range(len(KINDS)) if KINDS[i][0].split("/")[0] in os.environ.get("SETS", "seen unseen tune").split()]
    if "late" in os.environ.get("SETS", ""): tasks = [(i, t) for t in range(20) for i in range(len(KINDS)) if islate(KINDS[i][0])] + [(i, t) for i, t in tasks if not islate(KINDS[i][0])]
    late = False; LASTT = [a]
    with ctx.Pool(n - (1 if rev4 else 0)) as pool:
        for i, t, x, u, z in pool.imap_unordered(worker, tasks):
            res[i, t] = x; cpu += u; crc[i, t] = z; per[i] += sum(u)
            if t > LASTT[0]: LASTT[0] = t; keep()
            if time.time()-BEGUN > deadline: late = True; pool.terminate(); break
    print("variants", round(time.time()-BEGUN), "s, late", late, "cpu", round(cpu.sum()), flush=True); keep()
    if rev4:
        pw.join(); print("package warm", round(time.time()-BEGUN), flush=True)
        with ctx.Pool(n) as pool:
            if os.environ.get("R4"): tasks = [(i, t) for t in range(20) for i, k in enumerate(KINDS) if k[0].startswith(os.environ["R4"])]
            for i, t, x, u in pool.imap_unordered(regret4, tasks):
                r4[i, t] = x; c4 += u
                if time.time()-BEGUN > float(os.environ.get("LAST", 560)): print("rev4 late"); pool.terminate(); break
        print("rev4", round(time.time()-BEGUN), "s cpu", round(c4), "missing", int(np.isnan(r4[:, a:b]).sum()), flush=True); keep()
