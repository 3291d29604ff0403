"""Auto, phase 1 of issue 50: one design for values and clicks, on arrays alone (DESIGN.md is its page).

A lane is recursive least squares in (θ, offset) or, with a trend, in (θ, offset, velocity of θ): the covariance C (in units of the
noise) grows by 1/γ a round, and one coordinate a round is shown its prior, so that everything is d². The offset is the same for all
arms; plain and trend lanes never forget it, level lanes forget it fast. Two families, plain and level, have weights of their own;
evidence decides which one acts, and its likeliest lane plays θ'x + R s ψ(N s²/ς). For clicks x'θ is log odds and ς = 1/(p(1-p)).
run(arms, means, rewards, "values" or "clicks", seed, params(), lanes()) plays a stream; choose and learn are the policy.
P holds the constants, so that ablations need no compilation: params(looks=0), lanes(trends=()), ...
"""
import math
import numpy as np
from numba import njit
INF = math.inf
DEFAULT = dict(
    share=1e-3,     # of a family's weights, spread anew each round: a lane that was wrong for long can recover
    gap=4.0,        # a longer lane so many nats behind takes over the best one's data, and starts again half as many behind
    tilt=0.5,       # first log weight a doubling of memory
    reach=2.0,      # prior standard deviations of an arm's value, in those of rewards without noise (clicks: of log odds seen, or 1)
    least=0.3,      # rewards besides noise have no less than this part of the spread
    fade=1e-3,      # of noise a reward
    nu=8.0,         # degrees of freedom of the density of a reward
    psi=1.0,        # multiple of the index; 0 takes sqrt(1 + q log(1 + min(t, N)))
    q=0.45,
    looks=0.25,     # chance of a look, times sqrt(t)
    short=64.0,     # memory that looks ask
    hidden=4.0,     # an arm is hidden if it is known so many times less than those played
    now=8.0,        # nats that make the noise of now believed
    believed=3.0,   # nats that make level lanes act
    clip=1.0,       # nats that one reward may add
    rounds=4000.0,  # memory of this evidence
    lshare=-1.0, onefam=0.0, lvp=0.0, far=0.0, still=0.0, offp=0.0, offv=4.0, late=0.0, agew=0.0, psim=0.0, kap=1.0, trw=0.5, life0=20.0,
    creach=-1.0, ltilt=-1.0, psiq=0.5, hz=1.0, donor=0.0, lsc=0.0, onec=0.0, oddsp=1.0, hm=64.0,
    contrast=4.0,   # a reward counts min(1, contrast |x - mean of the last four arms|²/|x|²): a lone arm tells level from θ not
)
NAMES = list(DEFAULT)
(SHARE, GAP, TILT, REACH, LEAST, FADE, NU, PSI, Q, LOOKS, SHORT, HIDDEN, NOW, BELIEVED, CLIP, ROUNDS, LSHARE, ONEFAM, LVP, FAR, STILL, OFFP, OFFV, LATE, AGEW, PSIM, KAP, TRW, LIFE0, CREACH, LTILT, PSIQ, HZ, DONOR, LSC, ONEC, ODDSP, HM, CONTRAST) = range(len(NAMES))
T_, SQ, ERR, ERRW, MANY, NOWS, NOWW, NOWD, HID, STRANGE, MEAN, LAST, BESIDES, EVID, AGE = range(15)

def params(**kw):
    assert all(k in DEFAULT for k in kw), kw
    return np.array([float({**DEFAULT, **kw}[n]) for n in NAMES])

def lanes(plain=(8., 32., 64., 128., 512., 2048., INF), trends=(32., 128., 512., 2048.),
          levels=((64., 8.), (512., 8.), (INF, 8.), (64., 32.), (512., 32.), (INF, 32.)), keep=INF, keept=INF, kt=1.0):
    """Rows: memory of θ, memory of the offset, 1 with a trend, 1 in the family of levels."""
    return np.array([(n, max(keep, n), 0, 0) for n in plain] + [(n, max(keept, kt * n), 1, 0) for n in trends] + [(n, l, 0, 1) for n, l in levels])

@njit(cache=True, error_model="numpy")
def psi(u, mode, q):
    """Bonus in standard deviations when what is learned lasts u = N s²/R² (Brezzi and Lai's approximation of Gittins' index)."""
    if mode == 1:                                        # Chick and Gans 2009
        if u <= 1 / 7: return math.sqrt(u / 2)
        l = math.log(u)
        if u <= 100: return math.exp(-0.02645 * l * l + 0.89106 * l - 0.4873) / math.sqrt(u)
        return math.sqrt(2 * l - math.log(l) - 3.9173186)
    if mode == 2: return math.log1p(math.sqrt(u / 2))
    if mode == 3: return math.sqrt(q * math.log1p(u / (2 * q)))
    if u <= 0.2: return math.sqrt(u / 2)
    if u <= 1.0: return 0.49 - 0.11 / math.sqrt(u)
    if u <= 5.0: return 0.63 - 0.26 / math.sqrt(u)
    if u <= 15.0: return 0.77 - 0.58 / math.sqrt(u)
    l = math.log(u)
    return math.sqrt(2 * l - math.log(l) - 3.9173186)

@njit(cache=True, error_model="numpy")
def scale(g, P, clicks):
    """Noise variance, that of now, prior variance of a coordinate's value over noise, raw noise of now."""
    t = g[T_]
    many = max(g[MANY] / max(t, 1.0), 1.0)
    if clicks: return 1.0, 1.0, (P[REACH] if P[CREACH] < 0 else P[CREACH]) ** 2 * max(1.0, P[ODDSP] * g[BESIDES] / max(t, 1.0)) / many, 1.0
    spread = g[SQ] / max(t - 1, 1.0) if t > 1 else g[LAST] * g[LAST]
    if spread <= 0: spread = 1e-12 * g[MEAN] ** 2 if g[MEAN] != 0 else 1.0
    left = 10.0 * (1 - P[FADE]) ** t
    noise = max((left * 0.5 * spread + g[ERR]) / (left + g[ERRW]), 1e-10 * spread)
    now = (g[NOWS] + 4 * noise) / (g[NOWW] + 4)
    besides = g[BESIDES] / t if t > 1 else spread
    return noise, (now if g[NOWD] > P[NOW] else noise), P[REACH] ** 2 * max(besides - noise, P[LEAST] ** 2 * spread) / noise / many, now

@njit(cache=True, error_model="numpy")
def sig(z):
    return 1 / (1 + math.exp(-min(max(z, -20.0), 20.0)))

@njit(cache=True, error_model="numpy")
def acting(logw, g, ln, P):
    """The likeliest lane of the family that is believed."""
    f, k = (1 if g[EVID] > P[BELIEVED] else 0), -1
    for i in range(logw.size):
        if ln[i, 3] == f and min(ln[i, 0], ln[i, 1]) >= P[LATE] * g[AGE] and (k < 0 or logw[i] > logw[k]): k = i
    if k < 0:
        for i in range(logw.size):
            if ln[i, 3] == 0 and (k < 0 or ln[i, 0] > ln[k, 0]): k = i
    return k

@njit(cache=True, error_model="numpy")
def given(C, bar, D, y):
    """y = C bar and its variance."""
    var = 0.0
    for i in range(D):
        s = 0.0
        for j in range(D): s += C[i, j] * bar[j]
        y[i] = s
        var += s * bar[i]
    return max(var, 1e-300)

@njit(cache=True, error_model="numpy")
def value(m, C, v, prior, n, D, y, ybar):
    """Mean of v'θ, and its variance given the value of the last arm played: a level common to all costs no exploration."""
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
    """A larger score; of equal ones the larger features in order, so that the order of arms says nothing."""
    if s != best: return s > best
    for i in range(X.shape[1]):
        if X[a, i] != X[b, i]: return X[a, i] > X[b, i]
    return False

@njit(cache=True, error_model="numpy")
def size_of(x, n, q2, d):
    s = 0.0
    for i in range(d):
        if n[i] > 0: s += x[i] ** 2 * n[i] / q2[i]
    return s

@njit(cache=True, error_model="numpy")
def choose(m, C, logw, g, q2, n, bar, ln, P, X, clicks, u, v):
    """The arm played; u, v are uniform draws."""
    A, d = X.shape; D = d + 1; K = ln.shape[0]
    noise, now, prior, _ = scale(g, P, clicks)
    k = acting(logw, g, ln, P)
    x, y = np.empty(D), np.empty(D)
    x[d] = 1.0
    ybar = given(C[k], bar, D, y)
    life = min(ln[k, 0], g[T_] + P[LIFE0])
    quant = math.sqrt(1 + P[Q] * math.log1p(min(g[T_], ln[k, 0])))
    means, best, arm = np.empty(A), -1e300, 0
    for a in range(A):
        for i in range(d): x[i] = X[a, i]
        mean, var = value(m[k], C[k], x, prior, n, D, y, ybar)
        known = sig(mean) * (1 - sig(mean)) if clicks else noise / now          # 1/ς
        s = mean + math.sqrt(var * noise) * (P[PSI] * psi(P[HZ] * life * var * known, P[PSIM], P[PSIQ]) if P[PSI] > 0 else quant)
        means[a] = mean
        if a == 0 or better(s, best, X, a, arm): best, arm = s, a
    often = P[LOOKS] / math.sqrt(g[T_] + 1.0)
    if P[STILL] > 0:
        wi = 0.0
        for i in range(K):
            if ln[i, 0] == INF and ln[i, 3] == ln[k, 3]: wi += math.exp(logw[i])
        often *= max(P[STILL], 1 - wi)
    if g[T_] > 10 and u < min(1.0, often):
        top, total = means.max(), 0.0
        chance = np.zeros(A)
        sh = 0
        for i in range(K):
            if ln[i, 0] == P[SHORT] and ln[i, 3] == 0 and ln[i, 2] == 0: sh = i
        ybar = given(C[sh], bar, D, y)
        for a in range(A):
            if a == arm: continue
            for i in range(d): x[i] = X[a, i]
            mean, var = value(m[sh], C[sh], x, prior, n, D, y, ybar)
            if var > P[HIDDEN] * g[HID] * size_of(x, n, q2, d):
                gap = max(top - max(mean, means[a]), 0.0)
                if P[ONEC] == 2: chance[a] = P[FAR] * var * noise / (gap * gap + P[FAR] * var * noise)
                elif P[ONEC] > 0: chance[a] = 1.0 if gap * gap <= P[FAR] * var * noise else P[FAR] * var * noise / (gap * gap)
                else: chance[a] = var * noise / (gap * gap + 0.01 * var * noise)
                total += chance[a]
        if P[FAR] > 0:
            f = 0.0
            for a in range(A): f = max(f, chance[a])
            if P[ONEC] == 0: f = min(1.0, P[FAR] * f)
            if f <= 0: return arm
            if v >= f: return arm
            v /= f
        v *= total
        for a in range(A):
            v -= chance[a]
            if v <= 0 and chance[a] > 0: return a
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
def learn(m, C, logw, g, q2, n, bar, near, ln, P, x0, r, clicks, age):
    K = ln.shape[0]; d = x0.size; D = d + 1
    x = np.empty(D)
    for i in range(d): x[i] = x0[i]
    x[d] = 1.0
    if not clicks and g[T_] > 10:                        # out of all measure, and not the ninth in a row
        strange = g[SQ] + abs(g[MEAN]) > 0 and (r - g[MEAN]) ** 2 > 1e8 * (g[SQ] / g[T_] + g[MEAN] ** 2)
        for i in range(d): strange = strange or (n[i] > 0 and x[i] * x[i] * n[i] > 1e8 * q2[i])
        g[STRANGE] = g[STRANGE] + 1 if strange else 0.0
        if 0 < g[STRANGE] < 9: return
    g[T_] += 1
    t = g[T_]
    g[AGE] = max(age, g[AGE] * (1 - 1 / 1000))
    dev = r - g[MEAN]
    if t > 1: g[SQ] += dev * dev * (t - 1) / t
    g[MEAN] += dev / t
    g[LAST] = r
    for i in range(d):
        if x[i] != 0.0: g[MANY] += 1
    noise, now, p0, rawnow = scale(g, P, clicks)
    for i in range(d):
        if x[i] != 0.0:
            n[i] += 1; q2[i] += x[i] * x[i]
            if n[i] == 1:
                for k in range(K):
                    C[k, i, i] = p0 / (x[i] * x[i])
                    if ln[k, 2] > 0: C[k, D + i, D + i] = P[KAP] * C[k, i, i] / ln[k, 0] ** 2
    if t == 1:
        for k in range(K):
            C[k, d, d] = 1e4
            if clicks: m[k, d] = -2.0; C[k, d, d] = 4.0
    k0 = acting(logw, g, ln, P)
    kinf = 0
    for k in range(K):
        if ln[k, 0] == INF and ln[k, 3] == 0: kinf = k
    nu = min(P[NU], 1 + g[ERRW])
    y = np.empty(C.shape[1])
    part, fit = 0.0, 0.0
    sc = np.empty(K)
    for k in range(K):
        E = 2 * D if ln[k, 2] > 0 else D
        Ck, mk = C[k], m[k]
        mean, s = 0.0, 0.0
        aw = min((1 - 1 / ln[k, 0]) ** -age, 1e6) if P[AGEW] > 0 and age > 0 else 1.0
        for i in range(D): mean += mk[i] * x[i]
        for i in range(E):
            tt = 0.0
            for j in range(D): tt += Ck[i, j] * x[j]
            y[i] = tt
            if i < D: s += tt * x[i]
        s = max(s, 0.0)
        if k == k0: fit = mean - mk[d]
        if clicks:                                       # the mode z = mean + s (r - p(z)), as a value of variance 1/(p(1-p))
            pb = sig(mean / math.sqrt(1 + 0.3927 * s))
            sc[k] = math.log(pb) if r > 0.5 else math.log(1 - pb)
            z = mean
            sw = s / aw
            lo, hi = (mean, mean + sw) if r > 0.5 else (mean - sw, mean)
            for _ in range(30):
                p = sig(z)
                f = z - mean - sw * (r - p)
                if f > 0: hi = z
                else: lo = z
                step = f / (1 + sw * p * (1 - p))
                z = z - step if lo < z - step < hi else 0.5 * (lo + hi)
                if abs(step) < 1e-9: break
            p = sig(z)
            var = 1 / max(p * (1 - p), 1e-8)
            e = z + (r - p) * var - mean
        else:
            e, var = r - mean, now / noise
            z2 = e * e / (noise * (var + s))
            sc[k] = -0.5 * (math.log(var + s) + (nu + 1) * math.log1p(z2 / nu))
            if k == k0: part = e * e * var / (var + s)
            if var < 1.0: var = max(var, var * (8 + z2) / 9)
        if ln[k, 0] == P[SHORT] and ln[k, 3] == 0 and ln[k, 2] == 0:
            size, cr = size_of(x, n, q2, d), 0.0
            w_ = np.empty(D)
            yb = given(Ck, bar, D, w_)
            for i in range(D): cr += w_[i] * x[i]
            g[HID] += ((max(s - cr * cr / yb, 0.0) / size if size > 0 else 0.0) - g[HID]) / min(t, P[HM])
        f = 1 / (var * aw + s)
        for i in range(E):
            mk[i] += y[i] * e * f
            for j in range(E): Ck[i, j] -= y[i] * (y[j] * f) if i <= j else y[j] * (y[i] * f)
        ga, gb = 1 / math.sqrt(1 - 1 / ln[k, 0]), 1 / math.sqrt(1 - 1 / ln[k, 1])
        if ga > 1 or gb > 1:
            for i in range(E):
                gi = gb if i == d else ga
                for j in range(E): Ck[i, j] *= gi * (gb if j == d else ga)
        if E > D:                                        # θ moves by its velocity; sums in an order that keeps C symmetric
            for i in range(D):
                mk[i] += mk[D + i]
                for j in range(i + 1):
                    c = Ck[i, j] + (Ck[i, D + j] + Ck[j, D + i]) + Ck[D + i, D + j]
                    Ck[i, j] = c; Ck[j, i] = c
            for i in range(D):
                for j in range(D):
                    c = Ck[i, D + j] + Ck[D + i, D + j]
                    Ck[i, D + j] = c; Ck[D + j, i] = c
        if ga > 1:                                       # one coordinate is shown its prior
            i = int(t) % d
            if n[i] > 0:
                pv = p0 * n[i] / q2[i] * ln[k, 0] / d
                observe(mk, Ck, i, E, 0.0, pv)
                if E > D: observe(mk, Ck, D + i, E, 0.0, P[KAP] * pv / ln[k, 0] ** 2)
        if gb > 1:
            if P[OFFP] == 0:
                if Ck[d, d] > 1e4: observe(mk, Ck, d, E, mk[d], 1e4)
            elif P[OFFP] == 1: observe(mk, Ck, d, E, -2.0 if clicks else g[MEAN], (P[OFFV] if clicks else 1e4) * ln[k, 1])
            elif P[OFFP] == 2: observe(mk, Ck, d, E, m[kinf, d], (P[OFFV] if clicks else 1e4) * ln[k, 1])
            elif P[OFFP] == 3: observe(mk, Ck, d, E, m[kinf, d], (P[OFFV] if clicks else P[OFFV] * p0 * g[MANY] / t) * ln[k, 1])
    g[BESIDES] += fit * fit if clicks else (r - (m[k0, d] if t > 1 else 0.0)) ** 2
    h, size = 0.0, size_of(x, n, q2, d)
    for i in range(d):
        if n[i] > 0: h += (x[i] - near[i]) ** 2 * n[i] / q2[i]
        near[i] += (x[i] - near[i]) / min(t, 4)
    h = min(1.0, P[CONTRAST] * h / size) if size > 0 and P[CONTRAST] > 0 else 1.0
    if not clicks:
        nats = 0.5 * (math.log(noise / rawnow) + 9 * (math.log1p(part / 8 / noise) - math.log1p(part / 8 / rawnow)))
        g[NOWD] = max(0.0, (1 - 1 / 200) * g[NOWD] + min(max(nats, -1.0), 1.0))
        g[NOWS] = (1 - 1 / 40) * g[NOWS] + part; g[NOWW] = (1 - 1 / 40) * g[NOWW] + 1
        g[ERR] = (1 - P[FADE]) * g[ERR] + part; g[ERRW] = (1 - P[FADE]) * g[ERRW] + 1
    for i in range(D): bar[i] = x[i]
    paid = np.zeros(2)
    late_ = 1.0 if P[LSC] == 0 else math.exp(-age / P[LSC])
    if P[ONEFAM] > 0 and t > 1:
        top, tot, tp = -1e300, 0.0, 0.0
        for k in range(K):
            if ln[k, 3] == 0: top = max(top, logw[k] + sc[k])
        for k in range(K):
            if ln[k, 3] == 0: tot += math.exp(logw[k]); tp += math.exp(logw[k] + sc[k] - top)
        pl = top + math.log(tp) - math.log(tot)
        if P[CLIP] < 100:
            tl, lo, ll = -1e300, 0.0, 0.0
            for k in range(K):
                if ln[k, 3] > 0: tl = max(tl, logw[k] + sc[k])
            for k in range(K):
                if ln[k, 3] > 0: lo += math.exp(logw[k]); ll += math.exp(logw[k] + sc[k] - tl)
            over = tl + math.log(ll) - math.log(lo) - pl if lo > 0 else 0.0
            cut = over - min(max(over, -P[CLIP]), P[CLIP])
        else: cut = 0.0
        for k in range(K):
            if ln[k, 3] > 0: sc[k] = pl + h * (sc[k] - cut - pl)
        h = 1.0
    for f in range(2):                                   # weights of each family
        best, top, tot, many = -1, -1e300, 0.0, 0
        for k in range(K):
            if ln[k, 3] == f: top = max(top, logw[k] + sc[k]); many += 1
        if many == 0: continue
        for k in range(K):
            if ln[k, 3] == f: tot += math.exp(logw[k] + sc[k] - top)
        paid[f] = top + math.log(tot)                    # log density by the family
        for k in range(K):
            if ln[k, 3] == f:
                if t > 1: logw[k] += late_ * (sc[k] if f == 0 else h * sc[k])
                if (best < 0 or logw[k] > logw[best]) and min(ln[k, 0], ln[k, 1]) >= P[DONOR] * g[AGE]: best = k
        if best < 0: best = 0 if f == 0 else int(ln.shape[0] - 1)
        for k in range(K):
            if ln[k, 3] == f and ln[k, 0] > ln[best, 0] and (f == 0 or ln[k, 1] == ln[best, 1]) and ln[k, 2] >= ln[best, 2] and logw[k] < logw[best] - P[GAP]:
                logw[k] = logw[best] - 0.5 * P[GAP]
                Eb = 2 * D if ln[best, 2] > 0 else D
                for i in range(Eb):
                    m[k, i] = m[best, i]
                    for j in range(Eb): C[k, i, j] = C[best, i, j]
                if ln[k, 2] > ln[best, 2]:
                    for i in range(D):
                        m[k, D + i] = 0.0
                        for j in range(2 * D): C[k, D + i, j] = 0.0; C[k, j, D + i] = 0.0
                        if i < d and n[i] > 0: C[k, D + i, D + i] = P[KAP] * p0 * n[i] / q2[i] / ln[k, 0] ** 2
        if P[ONEFAM] > 0: continue
        top, tot = -1e300, 0.0
        for k in range(K):
            if ln[k, 3] == f: top = max(top, logw[k])
        for k in range(K):
            if ln[k, 3] == f: tot += math.exp(logw[k] - top)
        for k in range(K):
            if ln[k, 3] == f: 
                sh = P[SHARE] if f == 0 or P[LSHARE] < 0 else P[LSHARE]
                logw[k] = math.log((1 - sh) * math.exp(logw[k] - top) / tot + sh / many)
    if P[ONEFAM] > 0:
        top, tot, wl = logw.max(), 0.0, 0.0
        for k in range(K): tot += math.exp(logw[k] - top)
        for k in range(K): logw[k] = math.log((1 - P[SHARE]) * math.exp(logw[k] - top) / tot + P[SHARE] / K)
        for k in range(K):
            if ln[k, 3] > 0: wl += math.exp(logw[k])
        wl = min(wl, 1 - 1e-12)
        g[EVID] = math.log(wl / (1 - wl)) if wl > 0 else -1e9
    elif t > 1 and paid[1] != 0.0:
        g[EVID] = (1 - 1 / P[ROUNDS]) * g[EVID] + min(max(h * (paid[1] - paid[0]), -P[CLIP]), P[CLIP])

@njit(cache=True, error_model="numpy")
def play(arms, means, rewards, delay, clicks, P, ln, logw0, seed, acts):
    """Regret of a stream; delay is (T, A) rounds or of one row. acts: rounds and loss by acting lane."""
    np.random.seed(seed)
    T, A = means.shape; d = arms.shape[2]; D = d + 1; K = ln.shape[0]
    E = 2 * D if ln[:, 2].max() > 0 else D
    m, C, logw, g = np.zeros((K, E)), np.zeros((K, E, E)), logw0.copy(), np.zeros(15)
    q2, n, bar, near = np.zeros(d), np.zeros(d), np.zeros(D), np.zeros(d)
    fresh, late = arms.shape[0] > 1, delay.shape[0] > 1
    total = 0.0
    plays = np.zeros(T, np.int64)
    head = np.full(T + 1, -1); nxt = np.full(T, -1)
    for t in range(T):
        X = arms[t] if fresh else arms[0]
        a = choose(m, C, logw, g, q2, n, bar, ln, P, X, clicks, np.random.random(), np.random.random())
        plays[t] = a
        loss = means[t].max() - means[t, a]
        total += loss
        k = acting(logw, g, ln, P)
        acts[k, 0] += 1; acts[k, 1] += loss
        due = t + (delay[t, a] if late else 0)
        if due < T: nxt[t] = head[due]; head[due] = t
        s = head[t]
        while s >= 0:
            Xs = arms[s] if fresh else arms[0]
            learn(m, C, logw, g, q2, n, bar, near, ln, P, Xs[plays[s]], rewards[s, plays[s]], clicks, float(t - s))
            s = nxt[s]
    return total

def first_weights(ln, P):
    w = P[TILT] * np.log2(np.minimum(ln[:, 0], 4096)) - P[TRW] * ln[:, 2]
    if P[LTILT] >= 0: w += (P[LTILT] - P[TILT]) * np.log2(np.minimum(ln[:, 0], 4096)) * ln[:, 3]
    for f in (0, 1):
        if (ln[:, 3] == f).any(): w[ln[:, 3] == f] -= np.log(np.exp(w[ln[:, 3] == f]).sum())
    if P[ONEFAM] > 0:
        w = w - P[LVP] * ln[:, 3]
        w -= np.log(np.exp(w).sum())
    return w

def run(arms, means, got, rewards, seed, P, ln, delay=None, acts=None):
    if arms.ndim == 2: arms = arms[None]
    return play(np.ascontiguousarray(arms), means, got, np.zeros((1, 1), np.int64) if delay is None else delay.astype(np.int64), rewards == "clicks",
                P, ln, first_weights(ln, P), seed, np.zeros((len(ln), 2)) if acts is None else acts)
