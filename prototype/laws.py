import sys; sys.path[:0]=["proto","bench"]
import time, numpy as np, auto as one
from default_unseen import Stream, dot, still, jumps
rng=np.random.default_rng(3); T=6000
X=rng.standard_normal((T,15,8)); th=jumps(rng,T,8,2,.4); M=dot(X,th); R=M+rng.standard_normal((T,15))
P,ln=one.params(),one.lanes(); Pn=one.params(looks=0)
run=lambda X,M,R,r,P=P: one.run(np.ascontiguousarray(X),np.ascontiguousarray(M),np.ascontiguousarray(R),r,0,P,ln)
run(X,M,R,"values")
t=time.thread_time(); a=run(X,M,R,"values"); print("us a round d=8, 15 arms, values", (time.thread_time()-t)/T*1e6)
C=1/(1+np.exp(-M)); B=(rng.random(C.shape)<C)*1.0
t=time.thread_time(); c=run(X,C,B,"clicks"); print("clicks", (time.thread_time()-t)/T*1e6)
X2=rng.standard_normal((600,20,206))*.2; M2=dot(X2,still(.3*rng.standard_normal(206),600)); R2=M2+rng.standard_normal(M2.shape)
t=time.thread_time(); run(X2,M2,R2,"values"); print("d=206, 20 arms, us a round", (time.thread_time()-t)/600*1e6)
print("rewards x 1024 exact:", run(X,M*1024,R*1024,"values")==1024*a)
S=2.0**np.arange(-4,4); print("features x powers of 2, values, clicks:", run(X*S,M,R,"values")==a, run(X*S,C,B,"clicks")==c)
print("rewards + 100 (not exact):", a, run(X,M+100,R+100,"values"))
pi=rng.permutation(15)
for n,(x,m,r) in dict(fresh=(X,M,R),fixed=(X[0],np.tile(M[0],(T,1)),np.tile(M[0],(T,1))+rng.standard_normal((T,1))),onehot=(np.eye(15),M,M+rng.standard_normal((T,1)))).items():
    y=x[:,pi] if x.ndim==3 else x[pi]
    print("permuted arms, no looks,",n, run(x,m,r,"values",Pn), run(y,m[:,pi],r[:,pi],"values",Pn))
print("permuted arms, clicks", run(X,C,B,"clicks",Pn), run(X[:,pi],C[:,pi],B[:,pi],"clicks",Pn))
D=np.concatenate([X,X[:,:1]],1); print("duplicate arm, no looks:", run(X,M,R,"values",Pn), run(D,np.concatenate([M,M[:,:1]],1),np.concatenate([R,R[:,:1]],1),"values",Pn))
