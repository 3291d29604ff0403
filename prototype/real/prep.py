import numpy as np, os
from driftwise.lab import sets
os.makedirs('sets_made',exist_ok=True)
for name in sets.SETS:
    for k in range(4):
        log=sets.SETS[name].draw(k).reordered(k)
        np.savez('sets_made/%s-%d.npz'%(name,k),arms=log._sets.astype(np.float32 if False else np.float64),paid=log._paid)
    print(name,log._sets.shape,log._paid.shape,np.isnan(log._paid).mean(),np.unique(log._paid[~np.isnan(log._paid)])[:4],flush=True)
