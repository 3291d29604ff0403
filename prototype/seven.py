"""Work file: lanes with slopes of their own, offset memories, Newton's step for clicks, lean; P holds switches."""
import math
import numpy as np
from numba import njit
INF = math.inf
DEFAULT = dict(share=1e-3, gap=6.0, back=3.0, reach=1.5, least=0.3, fade=1e-3, nu=8.0, looks=0.25, short=64, gittins=1, q=0.45,
    noise_now=1, tilt=0.5, horizon=1.0, resc=1, margin=0.0, levelpen=3.0, looksd=4.0, pd=0, lean=0, kap=1.0, newton=1, offp=1e4, lmargin=0, trendpen=0.5,
    cshare=0, ctilt=0.5, cq=0, far=0, vm=0, creach=0, once=0, contrast=0, keepw=0, tl=0, evm=0, lshare=1e-5, codds=0, fclip=1.0, ffade=2.5e-4, ltilt=0, oddcap=0)
NAMES = list(DEFAULT)
(SHARE, GAP, BACK, REACH, LEAST, FADE, NU, LOOKS, SHORT, GITTINS, Q, NOISENOW, TILT, HORIZON, RESC, MARGIN, LEVELPEN, LOOKSD, PD, LEAN, KAP, NEWTON,
 OFFP, LMARGIN, TRENDPEN, CSHARE, CTILT, CQ, FAR, VM, CREACH, ONCE, CONTRAST, KEEPW, TL, EVM, LSHARE, CODDS, FCLIP, FFADE, LTILT, ODDCAP) = range(len(NAMES))
T_, SUM, SQ, ERR, ERRW, MANY, NOWS, NOWW, NOWD, HID, STRANGE, MEAN, AGAIN, LAST, BESIDES, UP, DOWN, EVID, VA, VB, VC, VD, VE = range(23)

def params(**kw):
    for k in kw: assert k in DEFAULT, k
    return np.array([float({**DEFAULT, **kw}[n]) for n in NAMES])

PLAIN = tuple(8.0 * 2**i for i in range(10)) + (INF,)
LEV = ((64., 8.), (512., 8.), (INF, 8.), (64., 32.), (512., 32.), (INF, 32.))
def lanes(plain=PLAIN, levels=LEV, trends=(), keep=None):
    """rows: memory, memory of the offset, slope, family. keep: offset memory of plain lanes (None: their own)"""
    rows = [(n, n if keep is None else max(keep, n), 0, 0) for n in plain] + [(n, n if keep is None else max(keep, n), 1, 0) for n in trends] + [(n, l, 0, 1) for n, l in levels]
    return np.array(rows)

@njit(cache=True, error_model="numpy")
def psi(u):
    if u <= 0.2: return math.sqrt(u / 2)
    if u <= 1.0: return 0.49 - 0.11 / math.sqrt(u)
    if u <= 5.0: return 0.63 - 0.26 / math.sqrt(u)
    if u <= 15.0: return 0.77 - 0.58 / math.sqrt(u)
    l = math.log(u)
    return math.sqrt(2 * l - math.log(l) - 3.9175)

@njit(cache=True, error_model="numpy")
def cprior(g, P, d):
    a = P[CREACH] ** 2 if P[CREACH] > 0 else P[REACH] ** 2
    if P[CODDS] > 0: a = max(a, P[CODDS] ** 2 * g[BESIDES] / max(g[T_], 1.0))
    if P[PD] > 0: a *= min(1.0, P[PD] / d)
    return a

@njit(cache=True, error_model="numpy")
def scale(g, P, d):
    """Noise variance, noise now, prior variance of an arm's value over noise, raw noise of now."""
    t = g[T_]
    spread = g[SQ] / max(t - 1, 1.0) if t > 1 else g[LAST] * g[LAST]
    if spread <= 0: spread = 1e-12 * (g[MEAN] ** 2) if g[MEAN] != 0 else 1.0
    left = 10.0 * (1 - P[FADE]) ** t
    noise = max((left * 0.5 * spread + g[ERR]) / (left + g[ERRW]), 1e-10 * spread)
    now = (g[NOWS] + 4 * noise) / (g[NOWW] + 4)
    besides = g[BESIDES] / t if t > 1 and P[RESC] > 0 else spread
    prior = P[REACH] ** 2 * max(besides - noise, P[LEAST] ** 2 * spread) / noise
    if P[PD] > 0: prior *= min(1.0, P[PD] / d)
    if P[NOISENOW] == 2 and abs(g[UP] - g[DOWN]) > 5 + 0.5 * (g[UP] + g[DOWN]): return noise, noise, prior, now
    return noise, (now if (g[NOWD] > 8 and P[NOISENOW] > 0) else noise), prior, now

@njit(cache=True, error_model="numpy")
def sig(z):
    return 1 / (1 + math.exp(-min(max(z, -20.0), 20.0)))

@njit(cache=True, error_model="numpy")
def acting(logw, ln, P, g):
    """The lane that acts: within a family the longest within the margin of its best."""
    K = logw.size
    if P[LMARGIN] == 0:
        k = 0
        for i in range(K):
            if logw[i] > logw[k]: k = i
        if P[MARGIN] > 0:
            b = k
            for i in range(K):
                if ln[i, 3] == ln[b, 3] and logw[i] >= logw[b] - P[MARGIN] and ln[i, 0] + 0.1 * ln[i, 2] > ln[k, 0] + 0.1 * ln[k, 2] and (ln[b, 3] == 0 or ln[i, 1] == ln[b, 1]): k = i
        return k
    fam = np.full(2, -1e300)                             # families by their sums
    if P[EVM] > 0:
        fam[0] = 0.0; fam[1] = g[EVID]
    for f in range(0 if P[EVM] == 0 else 2, 2):
        top = -1e300
        for i in range(K):
            if ln[i, 3] == f: top = max(top, logw[i])
        s = 0.0
        for i in range(K):
            if ln[i, 3] == f: s += math.exp(logw[i] - top)
        if s > 0: fam[f] = top + math.log(s)
    f = 1 if fam[1] > fam[0] + P[LMARGIN] else 0
    k = -1
    for i in range(K):
        if ln[i, 3] == f and (k < 0 or logw[i] > logw[k]): k = i
    if P[MARGIN] > 0:
        b = k
        for i in range(K):
            if ln[i, 3] == f and logw[i] >= logw[b] - P[MARGIN] and ln[i, 0] + 0.1 * ln[i, 2] > ln[k, 0] + 0.1 * ln[k, 2] and (f == 0 or ln[i, 1] == ln[b, 1]): k = i
    return k

@njit(cache=True, error_model="numpy")
def given(C, bar, D, y):
    var = 0.0
    for i in range(D):
        s = 0.0
        for j in range(D): s += C[i, j] * bar[j]
        y[i] = s
        var += s * bar[i]
    return max(var, 1e-300)

@njit(cache=True, error_model="numpy")
def look_at(m, C, v, prior, n, D, y, ybar):
    """Mean, and variance given the value of the last arm, of features v (v[D-1] = 1)."""
    mean, var, cross, new = 0.0, 0.0, 0.0, 0.0
    for i in range(D):
        vi = v[i]
        if vi != 0.0:
            mean += m[i] * vi
            if i < D - 1 and n[i] == 0: new += prior
            s = 0.0
            for j in range(D): s += C[i, j] * v[j]
            var += vi * s
            cross += vi * y[i]
    return mean, max(var - cross * cross / ybar, 0.0) + new

@njit(cache=True, error_model="numpy")
def better(s, best, X, a, b):
    """Larger score; of equal ones the larger features in order."""
    if s != best: return s > best
    for i in range(X.shape[1]):
        if X[a, i] != X[b, i]: return X[a, i] > X[b, i]
    return False

@njit(cache=True, error_model="numpy")
def choose(m, C, logw, g, q2, n, bar, ln, P, X, clicks, u, v, note):
    A, d = X.shape; D = d + 1; K = ln.shape[0]
    noise, now, prior, _ = scale(g, P, d)
    if clicks: prior = cprior(g, P, d)
    prior /= max(g[MANY] / max(g[T_], 1.0), 1.0)
    k = acting(logw, ln, P, g)
    note[0] = k
    x, y = np.empty(D), np.empty(D)
    x[d] = 1.0
    ybar = given(C[k], bar, D, y)
    life = min(ln[k, 0], P[HORIZON] * (g[T_] + 20.0))
    quant = math.sqrt(1 + P[Q] * math.log1p(min(g[T_], ln[k, 0])))
    means, best, arm = np.empty(A), -1e300, 0
    for a in range(A):
        for i in range(d): x[i] = X[a, i]
        mean, var = look_at(m[k], C[k], x, prior, n, D, y, ybar)
        if clicks:
            p = sig(mean); w = p * (1 - p)
            if P[GITTINS] > 0: s = p + w * math.sqrt(var) * P[GITTINS] * psi(life * var * w)
            elif P[CQ] >= 0: s = mean + P[CQ] * math.sqrt(var)
            else:
                pm = min(max(g[MEAN], 0.01), 0.99)
                ww = w if P[CQ] == -1 else (0.25 if P[CQ] == -2 else pm * (1 - pm))
                s = mean + math.sqrt(var) * psi(life * var * ww)
        else:
            sd = math.sqrt(var * noise)
            if P[GITTINS] > 0: s = mean + sd * P[GITTINS] * psi(life * var * noise / now)
            else: s = mean + quant * sd
        means[a] = mean
        if a == 0 or better(s, best, X, a, arm): best, arm = s, a
    note[1] = 0
    if P[LOOKS] > 0 and g[T_] > 10 and u < min(1.0, max(g[AGAIN], P[LOOKS] / math.sqrt(g[T_] + 1.0))):
        top, total = means.max(), 0.0
        chance = np.zeros(A)
        sh = 0
        for i in range(K):
            if ln[i, 0] == P[SHORT] and ln[i, 3] == 0 and ln[i, 2] == 0: sh = i
        ybar = given(C[sh], bar, D, y)
        for a in range(A):
            if a == arm: continue
            for i in range(d): x[i] = X[a, i]
            mean, var = look_at(m[sh], C[sh], x, prior, n, D, y, ybar)
            size = 0.0
            for i in range(d):
                if n[i] > 0: size += x[i] ** 2 * n[i] / q2[i]
            if var > P[LOOKSD] * g[HID] * size:
                gap = max(top - max(mean, means[a]), 0.0)
                vv = var * (1.0 if clicks else noise)
                chance[a] = vv / (gap * gap + 0.01 * vv)
                if P[FAR] > 0 and gap * gap > P[FAR] * vv: chance[a] = 0.0
                total += chance[a]
        if total > 0:
            if P[FAR] < 0:                               # looks are made as often as the likeliest seems worth it
                f = 0.0
                for a in range(A): f = max(f, chance[a])
                if v > min(1.0, -P[FAR] * f): return arm
                v = v / min(1.0, -P[FAR] * f)
            v *= total
            for a in range(A):
                v -= chance[a]
                if v <= 0 and chance[a] > 0:
                    note[1] = 1
                    return a
    return arm

@njit(cache=True, error_model="numpy")
def observe(m, C, i, E, target, variance):
    s = C[i, i] + variance
    if not C[i, i] > 0: return
    e = (target - m[i]) / s
    f = 1.0 / s
    c = C[i, :E].copy()
    for a in range(E):
        m[a] += c[a] * e
        for b in range(E): C[a, b] -= (c[a] * c[b]) * f

@njit(cache=True, error_model="numpy")
def learn(m, C, logw, g, q2, n, bar, near, ln, P, x0, r, clicks):
    K = ln.shape[0]; d = x0.size; D = d + 1
    x = np.empty(D)
    for i in range(d): x[i] = x0[i]
    x[d] = 1.0
    if not clicks and g[T_] > 10:
        strange = g[SQ] + abs(g[MEAN]) > 0 and (r - g[MEAN]) ** 2 > 1e8 * (g[SQ] / g[T_] + g[MEAN] ** 2)
        for i in range(d): strange = strange or (n[i] > 0 and x[i] * x[i] * n[i] > 1e8 * q2[i])
        g[STRANGE] = g[STRANGE] + 1 if strange else 0.0
        if 0 < g[STRANGE] < 9: return
    g[T_] += 1
    t = g[T_]
    dev = r - g[MEAN]
    if t > 1: g[SQ] += dev * dev * (t - 1) / t
    g[MEAN] += dev / t
    g[LAST] = r
    for i in range(d):
        if x[i] != 0.0: g[MANY] += 1
    noise, now, prior, rawnow = scale(g, P, d)
    if clicks: prior = cprior(g, P, d)
    p0 = prior / max(g[MANY] / t, 1.0)
    for i in range(d):
        if x[i] != 0.0:
            n[i] += 1; q2[i] += x[i] * x[i]
            if n[i] == 1:
                for k in range(K):
                    C[k, i, i] = p0 / (x[i] * x[i])
                    if ln[k, 2] > 0: C[k, D + i, D + i] = P[KAP] * p0 / (x[i] * x[i]) / ln[k, 0] ** 2
    if t == 1:
        for k in range(K):
            C[k, d, d] = P[OFFP] if P[OFFP] > 0 else max(1e-300, -P[OFFP] * p0)
            if clicks: m[k, d] = -2.0; C[k, d, d] = 4.0
            if P[TL] > 0 and ln[k, 2] > 0: C[k, D + d, D + d] = P[KAP] * C[k, d, d] / ln[k, 0] ** 2
    k0 = acting(logw, ln, P, g)
    nu = min(P[NU], 1 + g[ERRW])
    lean = P[LEAN] * (g[UP] - g[DOWN]) / (g[ERRW] + 200)
    E2 = C.shape[1]
    y = np.empty(E2)
    part, took = 0.0, 0.0
    sc = np.empty(K)
    for k in range(K):
        E = 2 * D if ln[k, 2] > 0 else D
        Ck, mk = C[k], m[k]
        mean, s = 0.0, 0.0
        for i in range(D): mean += mk[i] * x[i]
        for i in range(E):
            tt = 0.0
            for j in range(D): tt += Ck[i, j] * x[j]
            y[i] = tt
            if i < D: s += tt * x[i]
        s = max(s, 0.0)
        if clicks:
            pb = sig(mean / math.sqrt(1 + 0.3927 * s))
            sc[k] = math.log(pb) if r > 0.5 else math.log(1 - pb)
            z = mean
            if P[NEWTON] > 0:                            # the mode: z = mean + s (r - p(z))
                lo, hi = (mean, mean + s) if r > 0.5 else (mean - s, mean)
                for _ in range(30):
                    p = sig(z)
                    f = z - mean - s * (r - p)
                    if f > 0: hi = z
                    else: lo = z
                    step = f / (1 + s * p * (1 - p))
                    z = z - step if lo < z - step < hi else 0.5 * (lo + hi)
                    if abs(step) < 1e-9: break
            p = sig(z); w = max(p * (1 - p), 1e-8)
            var = 1 / w
            e = z + (r - p) * var - mean
            known = s * w
        else:
            e = r - mean
            var = now / noise
            known = s / var
            if P[VM] > 0 and g[VA] > 0:
                var *= min(max(1 + g[VA] * (mean - g[VB]), 0.1), 10.0)
            z2 = e * e / (noise * (var + s))
            sc[k] = -0.5 * (math.log(var + s) + (nu + 1) * math.log1p(z2 / nu)) - lean * min(max(math.copysign(math.sqrt(z2), e), -10.0), 10.0)
            if k == k0:
                part = e * e * var / (var + s)
                uu = min(max(math.copysign(math.sqrt(z2), e), -10.0), 10.0)
                took = uu - 9 * uu / (8 + uu * uu)
            if P[NOISENOW] > 0 and var < 1.0: var = max(var, var * (8 + z2) / 9)
        if k == k0 and P[ONCE] > 0: g[VE] = (r - sig(mean)) / math.sqrt(sig(mean) * (1 - sig(mean))) if clicks else e / math.sqrt(noise)
        if ln[k, 0] == P[SHORT] and ln[k, 3] == 0 and ln[k, 2] == 0:
            size, cr = 0.0, 0.0
            for i in range(d):
                if n[i] > 0: size += x[i] ** 2 * n[i] / q2[i]
            z_ = np.empty(D)
            yb = given(Ck, bar, D, z_)
            for i in range(D): cr += z_[i] * x[i]
            hid = max(s - cr * cr / yb, 0.0) / size if size > 0 else 0.0
            if P[ONCE] > 0: g[AGAIN] = 0.8 if g[VE] > 1.5 and known > 0.125 and hid > P[LOOKSD] * g[HID] else (0.8 * g[AGAIN] if g[AGAIN] > 0.05 else 0.0)
            g[HID] += (hid - g[HID]) / min(t, 64.0)
        f = 1 / (var + s)
        for i in range(E):
            mk[i] += y[i] * e * f
            yf = y[i] * f
            for j in range(E): Ck[i, j] -= y[i] * (y[j] * f) if i <= j else y[j] * yf
        gamma, beta = 1 - 1 / ln[k, 0], 1 - 1 / ln[k, 1]
        if gamma < 1 or beta < 1:
            ga, gb = 1 / math.sqrt(gamma), 1 / math.sqrt(beta)
            for i in range(E):
                gi = gb if i == d else ga
                for j in range(E): Ck[i, j] *= gi * (gb if j == d else ga)
        if E > D:                                        # θ moves by its velocity
            for i in range(D): mk[i] += mk[D + i]
            for i in range(D):
                for j in range(i + 1):
                    c = Ck[i, j] + (Ck[i, D + j] + Ck[j, D + i]) + Ck[D + i, D + j]
                    Ck[i, j] = c; Ck[j, i] = c
            for i in range(D):
                for j in range(D):
                    c = Ck[i, D + j] + Ck[D + i, D + j]
                    Ck[i, D + j] = c; Ck[D + j, i] = c
        if gamma < 1:
            i = int(t) % d
            if n[i] > 0:
                pv = p0 * n[i] / q2[i] / ((1 - gamma) * d)
                observe(mk, Ck, i, E, 0.0, pv)
                if E > D: observe(mk, Ck, D + i, E, 0.0, P[KAP] * pv / ln[k, 0] ** 2)
            if E > D and P[TL] > 0: observe(mk, Ck, D + d, E, 0.0, P[KAP] * 100.0 / ln[k, 0])
        if beta < 1 and Ck[d, d] > 1e4: observe(mk, Ck, d, E, mk[d], 1e4)
    off = m[k0, d] if t > 1 else 0.0
    if clicks:
        zz = 0.0
        for i in range(d): zz += m[k0, i] * x[i]
        g[BESIDES] += zz * zz
    elif P[RESC] == 2: g[BESIDES] += r * r
    else: g[BESIDES] += (r - off) ** 2
    h, size = 0.0, 0.0
    if P[CONTRAST] > 0:
        for i in range(d):
            if n[i] > 0:
                h += (x[i] - near[i]) ** 2 * n[i] / q2[i]; size += x[i] ** 2 * n[i] / q2[i]
            near[i] += (x[i] - near[i]) / min(t, 4)
    h = min(1.0, P[CONTRAST] * h / size) if size > 0 and P[CONTRAST] > 0 else 1.0
    if h < 1:
        top = -1e300
        for k in range(K):
            if ln[k, 3] == 0: top = max(top, logw[k] + sc[k])
        tot, plainly = 0.0, 0.0
        for k in range(K):
            if ln[k, 3] == 0: tot += math.exp(logw[k]); plainly += math.exp(logw[k] + sc[k] - top)
        plainly = top + math.log(plainly) - math.log(tot)
        for k in range(K):
            if ln[k, 3] > 0: sc[k] = plainly + h * (sc[k] - plainly)
    if P[EVM] > 0:
        sums = np.zeros(2)
        topf = np.full(2, -1e300)
        for k in range(K): topf[int(ln[k, 3])] = max(topf[int(ln[k, 3])], logw[k] + sc[k])
        for k in range(K): sums[int(ln[k, 3])] += math.exp(logw[k] + sc[k] - topf[int(ln[k, 3])])
        if sums[1] > 0 and t > 1:
            nats = topf[1] + math.log(sums[1]) - topf[0] - math.log(sums[0])
            g[EVID] = (1 - P[FFADE]) * g[EVID] + min(max(nats, -P[FCLIP]), P[FCLIP])
    if t > 1:
        for k in range(K): logw[k] += sc[k]
    if not clicks:
        nats = 0.5 * (math.log(noise / rawnow) + 9 * (math.log1p(part / 8 / noise) - math.log1p(part / 8 / rawnow)))
        g[NOWD] = max(0.0, (1 - 1 / 200) * g[NOWD] + min(max(nats, -1.0), 1.0))
        g[NOWS] = (1 - 1 / 40) * g[NOWS] + part; g[NOWW] = (1 - 1 / 40) * g[NOWW] + 1
        keep = 1 - P[FADE]
        g[ERR] = keep * g[ERR] + part; g[ERRW] = keep * g[ERRW] + 1
        g[UP] = keep * g[UP] + max(took, 0.0); g[DOWN] = keep * g[DOWN] + max(-took, 0.0)
        if P[VM] > 0:                                    # does variance follow the mean? slope of e²/noise on the forecast
            f0 = 0.0
            for i in range(D): f0 += m[k0, i] * x[i]
            g[VB] += (f0 - g[VB]) / min(t, 1000.0)
            g[VC] += ((f0 - g[VB]) ** 2 - g[VC]) / min(t, 1000.0)
            g[VD] += ((f0 - g[VB]) * min(part / noise - 1, 20.0) - g[VD]) / min(t, 1000.0)
            g[VA] = max(g[VD] / (g[VC] + 0.1 * noise), 0.0)
    for i in range(D): bar[i] = x[i]
    for f in range(2 if P[EVM] > 0 else 1):
        best = -1
        for k in range(K):
            if (P[EVM] == 0 or ln[k, 3] == f) and (best < 0 or logw[k] > logw[best]): best = k
        if best < 0: continue
        for k in range(K):
            if ln[k, 0] > ln[best, 0] and ln[k, 3] == ln[best, 3] and (ln[k, 3] == 0 or ln[k, 1] == ln[best, 1]) and ln[k, 2] >= ln[best, 2] and logw[k] < logw[best] - P[GAP]:
                logw[k] = logw[best] - P[BACK]
                Eb = 2 * D if ln[best, 2] > 0 else D
                for i in range(Eb):
                    m[k, i] = m[best, i]
                    for j in range(Eb): C[k, i, j] = C[best, i, j]
                if ln[k, 2] > 0 and ln[best, 2] == 0:
                    for i in range(D):
                        m[k, D + i] = 0.0
                        for j in range(2 * D): C[k, D + i, j] = 0.0; C[k, j, D + i] = 0.0
                        if i < d and n[i] > 0: C[k, D + i, D + i] = P[KAP] * p0 * n[i] / q2[i] / ln[k, 0] ** 2
    share = P[CSHARE] if clicks and P[CSHARE] > 0 else P[SHARE]
    for f in range(2 if P[EVM] > 0 else 1):
        top, tot, many = -1e300, 0.0, 0
        for k in range(K):
            if P[EVM] == 0 or ln[k, 3] == f: top = max(top, logw[k]); many += 1
        for k in range(K):
            if P[EVM] == 0 or ln[k, 3] == f: tot += math.exp(logw[k] - top)
        sh = P[LSHARE] if f == 1 else share
        for k in range(K):
            if P[EVM] == 0 or ln[k, 3] == f: logw[k] = math.log((1 - sh) * math.exp(logw[k] - top) / tot + sh / many)

@njit(cache=True, error_model="numpy")
def play(arms, means, rewards, delay, clicks, P, ln, logw0, seed, acts):
    np.random.seed(seed)
    T, A = means.shape; d = arms.shape[2]; D = d + 1; K = ln.shape[0]
    E = 2 * D if ln[:, 2].max() > 0 else D
    m, C, logw, g = np.zeros((K, E)), np.zeros((K, E, E)), logw0.copy(), np.zeros(24)
    q2, n, bar, near = np.zeros(d), np.zeros(d), np.zeros(D), np.zeros(d)
    fresh, late = arms.shape[0] > 1, delay.shape[0] > 1
    total = 0.0
    plays = np.zeros(T, np.int64)
    note = np.zeros(2, np.int64)
    head = np.full(T + 1, -1); nxt = np.full(T, -1)
    looked = 0.0
    for t in range(T):
        X = arms[t] if fresh else arms[0]
        a = choose(m, C, logw, g, q2, n, bar, ln, P, X, clicks, np.random.random(), np.random.random(), note)
        plays[t] = a
        loss = means[t].max() - means[t, a]
        total += loss
        acts[note[0], 0] += 1
        acts[note[0], 1] += loss
        if note[1] > 0: acts[K, 0] += 1; acts[K, 1] += loss
        if not late:
            learn(m, C, logw, g, q2, n, bar, near, ln, P, X[a], rewards[t, a], clicks)
        else:
            due = t + delay[t, a]
            if due < T: nxt[t] = head[due]; head[due] = t
            s = head[t]
            while s >= 0:
                Xs = arms[s] if fresh else arms[0]
                learn(m, C, logw, g, q2, n, bar, near, ln, P, Xs[plays[s]], rewards[s, plays[s]], clicks)
                s = nxt[s]
    return total
def first_weights(ln, P, clicks):
    w = np.log2(np.minimum(ln[:, 0], 4096 if P[KEEPW] else 16384 / 4)) * 1.0
    w[np.isinf(ln[:, 0])] = 12
    w = w * (P[CTILT] if clicks else P[TILT])
    w[ln[:, 3] > 0] -= P[LEVELPEN]
    w[ln[:, 2] > 0] -= P[TRENDPEN]
    if P[EVM] > 0:
        lev = ln[:, 3] > 0
        w[lev] = P[LTILT] * np.log2(np.minimum(ln[lev, 0], 4096))
        for f in (0, 1):
            if (ln[:, 3] == f).any(): w[ln[:, 3] == f] -= np.log(np.exp(w[ln[:, 3] == f]).sum())
        return w
    return w - np.log(np.exp(w).sum())
def run(arms, means, got, rewards, seed, P, ln, delay=None, acts=None):
    if arms.ndim == 2: arms = arms[None]
    clicks = rewards == "clicks"
    return play(arms, means, got, np.zeros((1, 1), np.int64) if delay is None else delay, clicks, P, ln, first_weights(ln, P, clicks), seed,
                np.zeros((len(ln) + 1, 2)) if acts is None else acts)
