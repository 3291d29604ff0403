"""Write streams of a subset of kinds as .npy: cache/KIND/TRIAL-{arms,means,rewards[,delay]}.npy; list.json names the kinds."""
import os
os.environ["OMP_NUM_THREADS"]="1"
import sys, json
from pathlib import Path
import numpy as np
here=Path(__file__).parent; sys.path[:0]=[str(here),str(here.parent/"bench")]
import default, products
SEEN="""scale_constant|noise_changes_turn|unseen_rise|one_hot_walk|two_arms_turn|offset_five|still_d50|rare_purchases|half_turn_five_arms|scale_collinear_duplicated|scale_collinear_summed|noise_none_turn|noise_by_arm|noise_correlated|offset_turn_fresh|drift: still|drift: one turn|drift: four turns|drift: 3 jumps|drift: 20 jumps|drift: half still, half fast|drift: walk .005|drift: one turn, quiet|drift: still, fresh|drift: one turn, d=5|drift: one turn, d=5, noise .1|drift: walk .005, d=5|level: seasons|level: blocks, basis of 20, noise .3|level: walk, 1 turn|hidden_rise_quiet|drift: still, S=1|drift: one turn, S=1|drift: four turns, S=5|drift: four turns, S=3|drift: 20 jumps, S=3|drift: walk .005, S=3|level of odds: seasons|rate_one_percent_fixed|rate_one_percent_jumps|level_of_odds_walk|level_of_items_walk|items_come_and_go_features|items_one_hot_forty|users_by_items_walk|turns_d5|unseen_rise_of_clicks|wide_features""".split("|")
UN="catalogue_of_200|latency_heavy_tails|funds_uneven_risk|crops_in_one_weather|compiler_flags|sensor_that_ages|two_regimes_recur|battery_spread|slow_riser|volume_multiplies|users_by_items|price_points|fresh_news|listings_turn_over|survey_dummies|fashion_jumps|worst_comes_back|outages|near_certain_answers|embeddings_of_200|hidden_audiences".split("|")
PR="hours_of_day_seen|users_items|catalogue|many_items|five_variants_c|arrivals_one_hot_c|late_conversions_c|novelty_c".split("|")
def safe(n): return "".join(c if c.isalnum() or c in "._-" else "_" for c in n)
def main():
    out=here/"cache"; out.mkdir(exist_ok=True); todo=[]
    for h,ns in (("seen",SEEN),("unseen",UN)):
        reg=default.registry(h)
        for n in ns: todo.append((f"{h}/{n}",reg[n][0],reg[n][1],None))
    for n in PR: todo.append((f"tune/{n}",products.REGISTRY[n][0],products.REGISTRY[n][1],products.DELAYS[n]))
    meta=[]
    N=int(sys.argv[1])
    for trial in range(N):
        for name,draw,rew,dl in todo:
            f=out/safe(name); f.mkdir(exist_ok=True)
            if (f/f"{trial}-rewards.npy").exists(): continue
            s=draw(trial,6000)
            np.save(f/f"{trial}-arms.npy",np.ascontiguousarray(s.arms,dtype=float)); np.save(f/f"{trial}-means.npy",np.ascontiguousarray(s.means,dtype=float))
            d=dl(trial) if dl else None
            if d is not None: np.save(f/f"{trial}-delay.npy",d.astype(np.int64))
            np.save(f/f"{trial}-rewards.npy",np.ascontiguousarray(s.rewards,dtype=float))
        print(trial,flush=True)
        if trial==0: (out/"list.json").write_text(json.dumps([(n,safe(n),r) for n,_,r,_ in todo]))
main()
