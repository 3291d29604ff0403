# continuous Gittins: Brownian with posterior. Exact-ish psi via stopping DP in time s=1/(c n)...
import numpy as np
# X ~ arm N(mu_t, v), discounting rate c (beta=e^{-c}), obs noise 1. Known arm value lam. n = 1/v grows 1 a round.
# value of arm minus stop (lam/(1-b) -> set lam=0): W(m,n)=max(0, m+ b E W(m',n+1)). index: -m* at which W=0 boundary => psi=-m*/sd (index of arm with mean 0 is lam=-m*).
def index(c, ns, nmax_mult=60, grid=4001):
    b=np.exp(-c); N=int(nmax_mult/c)
    out={}
    # grid in z = m*sqrt(n) units? use fixed grid in m scaled by sd at n: interpolate
    z=np.linspace(-6,6,grid)
    # terminal
    n=N; m=z/np.sqrt(n); W=np.maximum(0,m)/(1-b)
    from numpy.polynomial.hermite_e import hermegauss
    x,w=hermegauss(21); w=w/w.sum()
    want=set(ns)
    while n>1:
        n-=1 if True else 0
        m=z/np.sqrt(n); sdm=np.sqrt(1/n-1/(n+1))
        zz=(m[:,None]+sdm*x[None])*np.sqrt(n+1)
        V=np.interp(zz,z,W,left=0)
        hi=zz>z[-1]; V=np.where(hi, zz/np.sqrt(n+1)/(1-b), V)
        C=m+b*(V@w)
        if n in want:
            i=np.argmax(C>0); z0=z[i-1]-C[i-1]*(z[i]-z[i-1])/(C[i]-C[i-1]); out[n]=-z0
        W=np.maximum(0,C)
        if n<=min(want): break
    return out
def bl(u):
    if u<=.2: return np.sqrt(u/2)
    if u<=1: return .49-.11/np.sqrt(u)
    if u<=5: return .63-.26/np.sqrt(u)
    if u<=15: return .77-.58/np.sqrt(u)
    return np.sqrt(2*np.log(u)-np.log(np.log(u))-np.log(16*np.pi))
def cg(s):
    if s<=1/7: return np.sqrt(s/2)
    if s<=100: return np.exp(-.02645*np.log(s)**2+.89106*np.log(s)-.4873)/np.sqrt(s)
    return bl(s)
c=.002
r=index(c,[1,2,3,5,10,20,33,50,100,167,250,500,1000,2500,5000],nmax_mult=12,grid=2401)
for n in sorted(r): u=1/(c*n); print(n, round(u,2), "dp",round(r[n],3),"BL",round(bl(u),3),"CG",round(cg(u),3))
