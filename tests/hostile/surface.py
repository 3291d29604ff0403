"""Random calls of the public surface: plausible arguments, some of which are replaced by invalid ones."""

import datetime
import math

import numpy as np

import driftwise as dw
from driftwise import research
from hostile.battery import DIM, arms_of, lived, policies

# Invalid arguments.
BAD = (
    None, True, False, "", "x", "nan", "🦊" * 200, b"", b"DRIFTWSE", [], {}, (), set(), object(), len, dict, range(3),
    math.nan, math.inf, -math.inf, -1, 0, -0.5, 0.0, 1.5, 10**9, 10**18, 2**63, -(2**63), 10**400, 1e308, -1e308,
    1e-320, 1j, np.float32(math.nan), np.int8(-1), np.uint64(2**64 - 1), np.longdouble("1e4000"),
    np.datetime64("2020-01-01"), datetime.date(2020, 1, 1), [math.nan], [[[]]], [[1.0], [1.0, 2.0]],
    np.array([]), np.array(3), np.array(3.5),
    np.array(["a", "b"]), np.array([None, 1]), np.zeros((2, 2, 2)), np.zeros((0, 3)), np.zeros((3, 0)), np.eye(3),
    np.full((2, 3), math.nan), np.zeros((2, 3), dtype=bool), np.eye(3, dtype=complex), np.eye(3, dtype=object),
    np.eye(3).astype(">f8"), np.ones((2, 3), dtype=np.float16) * 60000, np.eye(6)[::2, ::2],
    np.ma.masked_array([[1.0, 0.0, 0.0]], mask=[[1, 0, 0]]),
)  # fmt: skip


class Caller:
    """Draws a call, makes it, and reports what was called."""

    def __init__(self, seed):
        self.chance = np.random.default_rng(seed)
        self.share = float(self.chance.choice([0.1, 0.3, 0.6]))
        self.malformed = False

    def one(self, *choices):
        return choices[int(self.chance.integers(len(choices)))]

    def bad(self, value):
        return BAD[int(self.chance.integers(len(BAD)))] if self.chance.random() < self.share else value

    def some(self, **plausible):
        """Keyword arguments, most of them given, some of them bad."""
        kept = {}
        for name, choices in plausible.items():
            must = name.endswith("_")
            if must or self.chance.random() < 0.4:
                choice = choices() if callable(choices) else self.one(*choices)
                kept[name.removesuffix("_")] = self.bad(choice)
        if self.chance.random() < 0.03:
            kept["nonsense"] = 1
            self.malformed = True
        elif kept and self.chance.random() < 0.03:
            kept.pop(self.one(*kept))
            self.malformed = True
        return kept

    def memory(self):
        kind = self.one(dw.Keep, dw.Fade, dw.Window, dw.Restart)
        return kind() if kind is dw.Keep else kind(0.1) if kind is dw.Fade else kind(7.0)

    def link(self):
        return self.one("logistic", "probit", "identity", "poisson",
                        research.Link(mean=lambda z: z, slope=np.ones_like, k=1.0, c=1.0))  # fmt: skip

    def base(self):
        return self.one(dw.make("OFUL", dim=DIM, horizon=50), dw.make("LogUCB1", dim=DIM, horizon=50),
                        dw.make("OFULog", dim=DIM, horizon=50), "OFUL")  # fmt: skip


INDEX = {"dim_": (3, 2), "memory_": None, "lam_": (1.0, 3), "delta_": (0.1, None), "S": (1.0, 0.5), "L": (1.0,),
         "exploration": (1.0, 0)}  # fmt: skip


def index_fields(caller, **more):
    return caller.some(**{**INDEX, "memory_": caller.memory, **more})


def constructor(caller):
    """A memory, a policy, a link: and a state of it, if there is one."""
    glm = {"link": caller.link, "R": (0.5, None), "m": (1.0, 2), "estimate": ("exact", "one-pass"), "horizon_": (40,),
           "capacity": (9, None)}  # fmt: skip
    kind = caller.one(dw.Fade, dw.Window, dw.Restart, research.Link, dw.LinearUCB, research.GLMUCB,
                      research.SelfConcordantUCB, research.BVDGLMUCB, research.DiscountedSelfConcordantUCB,
                      research.PiecewiseUCB, research.OFULog, research.LogisticUCB2, research.BanditOverBandit,
                      research.Master, research.FadeBank, research.Auto)  # fmt: skip
    if kind is dw.Fade:
        return kind, caller.some(forget_=(0.1,))
    if kind is dw.Window:
        return kind, caller.some(length_=(7, 3.5), capacity=(4,))
    if kind is dw.Restart:
        return kind, caller.some(period_=(7, 3.5))
    if kind is research.Link:
        return kind, caller.some(mean_=lambda: np.tanh, slope_=lambda: np.ones_like, k_=(1.0,), c_=(0.5,))
    if kind is dw.LinearUCB:
        matrices = ("correct", "as-published", None)
        return kind, index_fields(caller, R=(1.0,), two_matrix=matrices, radius=("weighted", "cheung"))
    if kind is research.BanditOverBandit:
        grid = (caller.memory(), caller.memory())
        return kind, caller.some(base_=caller.base, horizon_=(50,), grid=(grid,), block=(5,))
    if kind is research.Master:
        return kind, caller.some(base_=caller.base, horizon_=(50,), n0=(0, 3), test_scale=(1.0, math.inf))
    if kind is research.FadeBank:
        return kind, caller.some(base_=caller.base, memories=((8.0, 64.0), [5, math.inf]), share=(0.01,), margin=(1.0,),
                                 gap=(6.0,), back=(3.0,), tilt=(0.5, None), kappa=(1.5,))  # fmt: skip
    if kind is research.Auto:
        return kind, caller.some(dim_=(3, 2), link=("identity", "logistic", "probit"), memory=caller.memory,
                                 looks=(0.25, 0, 3.0), rate=(0.1, None), L=(1.0, None))  # fmt: skip
    return kind, index_fields(caller, **glm)


def used(policy, caller):
    """A round of a policy that the constructor accepted."""
    if hasattr(policy, "start"):
        state = policy.start(caller.bad(3))
        if isinstance(policy.dim, int) and policy.dim <= 6:
            arms = np.eye(policy.dim) * min(1.0, policy.reach)
            policy.learn(state, arms, 0, 1.0 if policy.largest_reward >= 1.0 else 0.0)
            policy.choose(state, arms)


def call_constructor(caller):
    kind, fields = constructor(caller)
    yield f"{kind.__name__}({fields})"
    used(kind(**fields), caller)


def call_make(caller):
    names = [row["name"] for row in dw.catalogue()]
    name = caller.bad(caller.one(*names))
    fields = caller.some(dim_=(3,), horizon_=(50,), path_length_=(1.0, 0.0), changes_=(2,), memory=caller.memory,
                         lam=(1.0,), delta=(0.1,), S=(1.0,), L=(1.0,), R=(0.5,), link=caller.link,
                         memories=((8.0, 64.0),), n0=(2,), grid=((dw.Fade(0.1), dw.Fade(0.2)),),
                         estimate=("exact", "one-pass"))  # fmt: skip
    yield f"make({name!r}, {fields})"
    caller.malformed = caller.malformed and "dim" not in fields  # make itself reports unknown fields
    used(dw.make(name, **fields), caller)


def call_use(caller, warm):
    """start, choose, scores, learn, advance and similar methods of a valid policy."""
    name = caller.one(*warm)
    policy, lived_state = warm[name]
    state = caller.bad(lived_state.copy() if caller.chance.random() < 0.95 else warm[caller.one(*warm)][1].copy())
    rows = arms_of(caller.chance)
    arms = caller.bad(caller.one(rows, rows.tolist(), dw.ArmSet(rows)))
    what = caller.one("start", "choose", "scores", "learn", "learn", "learn", "advance", "draw", "extra")
    if what == "learn":
        words = caller.some(arm_=(0, np.int64(2)), reward_=(0.0, 1.0, True, 0.5), ticks=(1.0, 0.0, 2), age=(0.0, 1.5))
    elif what == "advance":
        words = caller.some(ticks=(1.0, 0.25, 3))
    elif what == "start":
        words = caller.some(seed=(0, 5, 2**70))
    elif what == "draw":
        words = caller.some(draw=(None, 3))
    else:
        words = {}
    yield f"{name}.{what}({state!r:.60}, {arms!r:.80}, {words})"
    if what == "start":
        policy.start(**words)
    elif what == "learn":
        policy.learn(state, arms, **words)
    elif what == "advance":
        policy.advance(state, **words)
    elif what == "draw":
        policy.choose(state, arms, **words)
    elif what == "extra":
        for method in ("memory", "report", "diagnose"):
            if callable(getattr(policy, method, None)):
                getattr(policy, method)(state, *([arms] if method == "diagnose" else []))
    else:
        getattr(policy, what)(state, arms)


def call_bytes(caller, warm):
    data = caller.bad(warm[caller.one(*warm)][1].to_bytes())
    yield f"State.from_bytes({data!r:.80})"
    dw.State.from_bytes(data)


def call_arms(caller):
    arms = caller.bad(caller.bad(np.eye(3)))
    yield f"ArmSet({arms!r:.80})"
    found = dw.ArmSet(arms)
    assert len(found) >= 1 and found.dim >= 1


def call_advise(caller):
    fields = caller.some(click_rate=(0.03, (0.01, 0.2)), values=((0.0, 5.0), [1, 2]), L=(1.0, 2))
    if "click_rate" in fields and isinstance(fields["click_rate"], tuple) and caller.chance.random() < 0.5:
        fields["click_rate"] = (caller.bad(0.1), caller.bad(0.2))
    caller.malformed = caller.malformed and "nonsense" in fields
    yield f"advise({fields})"
    dw.advise(**fields)


def call_catalogue(caller):
    words = caller.some()
    yield f"catalogue({words})"
    dw.catalogue(**words)


def world_of(caller):
    there = dw.worlds
    kind = caller.one(there.Still, there.Turn, there.Walk, there.Jumps, there.StopAndGo, there.Given)
    if kind is there.Given:
        draw = caller.chance.standard_normal
        return kind, caller.some(arms_=lambda: draw((4, 3)), theta_=lambda: draw((9, 3)), noise=(0.5,),
                                 reward=("gaussian", "bernoulli"), link=(None, "logistic"),
                                 tape=lambda: caller.chance.random(9))  # fmt: skip
    return kind, caller.some(
        horizon_=(20,), dim=(2, 3), arms=(4,), radius=(1.0, 2), reward=("gaussian", "bernoulli", "poisson"),
        noise=(0.5,), norm=("unit", "clip", "max"), fresh=(True, False), link=(None, "logistic", "probit"),
        draw=("normal", "cube"), path_seed=(3,), arms_of=(2, None),
    )  # fmt: skip


def call_world(caller):
    kind, fields = world_of(caller)
    yield f"{kind.__name__}({fields})"
    world = kind(**fields)
    if world.horizon <= 100 and world.arms * world.dim <= 1000:
        assert len(world.theta()) == world.horizon if callable(world.theta) else True
        for tape in world.tapes(caller.bad(0), caller.bad(1)):
            assert np.isfinite(tape.best).all()
        assert world.facts["dim"] == world.dim


def call_simulate(caller, warm):
    named = caller.one({"OFUL": warm["OFUL"][0]}, warm["OFUL"][0], {"a": warm["OFUL"][0], "b": None}, {})
    world = caller.bad(dw.worlds.Turn(horizon=10, dim=3, arms=3))
    words = caller.some(trials=(1, 2, [0, 3]), seed=(0,), jobs=(1,), record=("all", "last", 3), stepped=(True, False),
                        progress=(False, None))  # fmt: skip
    words.setdefault("trials", 1)
    if isinstance(words["trials"], int) and words["trials"] > 5:
        words["trials"] = 2
    named = caller.bad(named)
    yield f"simulate({named!r:.60}, {world!r:.60}, {words})"
    dw.simulate(named, world, **words)


def call_checks(caller, warm):
    what = caller.one("policy", "world")
    thing = BAD[int(caller.chance.integers(len(BAD)))] if caller.chance.random() < 0.5 else warm["OFUL"][0]
    if what == "world":
        thing = caller.bad(dw.worlds.Turn(horizon=10, dim=3, arms=3))
    words = caller.some(seed=(0,)) if what == "world" else caller.some(dim=(3, None), rounds_=(4,), seed=(0,))
    if isinstance(words.get("rounds"), int) and words["rounds"] > 50:
        words["rounds"] = 3
    yield f"checks.check_{what}({thing!r:.60}, {words})"
    try:
        getattr(dw.checks, f"check_{what}")(thing, **words)
    except AssertionError:
        pass  # a law that does not hold, as checks report it


CALLS = ((call_constructor, 6, False), (call_make, 5, False), (call_use, 9, True), (call_bytes, 1, True),
         (call_arms, 1, False), (call_advise, 1, False), (call_catalogue, 0.2, False), (call_world, 3, False),
         (call_simulate, 1, True), (call_checks, 0.7, True))  # fmt: skip


def calls(count, seed):
    """So many random calls; each a name and a function that makes it."""
    warm = {name: (policy, lived(policy, 6)) for name, policy in policies().items()}
    oful = dw.make("OFUL", dim=DIM, horizon=50)
    warm["OFUL"] = oful, lived(oful, 6)
    shares = np.array([share for _, share, _ in CALLS])

    def drawn(number):
        caller = Caller([seed, number])
        way, _, takes = CALLS[int(caller.chance.choice(len(CALLS), p=shares / shares.sum()))]
        steps = way(caller, warm) if takes else way(caller)
        what = next(steps)

        def case():
            try:
                next(steps, None)
            except TypeError as error:
                ours = any(word in str(error) for word in ("unexpected keyword argument", "required", "missing"))
                if not (caller.malformed and ours):
                    raise

        return " ".join(f"call {number}: {what}".split())[:400], case

    return (drawn(number) for number in range(count))
