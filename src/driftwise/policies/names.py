"""The catalogue: every named algorithm as a row, with its citation, its point, and its theorem's tuning."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from driftwise._internal.elementary import log
from driftwise._internal.validate import one_of, real, whole
from driftwise.errors import BadInput
from driftwise.policies.adapt import (
    MEMORIES,
    Adaptive,
    BanditOverBandit,
    FadeBank,
    Master,
    checked_memories,
    fades,
)
from driftwise.policies.auto import Auto
from driftwise.policies.base import Compiled
from driftwise.policies.bvd import BVDGLMUCB
from driftwise.policies.glm import GLMUCB
from driftwise.policies.linear import LinearUCB
from driftwise.policies.memory import Fade, Keep, Memory, Restart, Window
from driftwise.policies.model import constants
from driftwise.policies.neighbours.dlinucb import DLinUCB
from driftwise.policies.neighbours.exp3 import Exp3S
from driftwise.policies.neighbours.glr import GLRRestart
from driftwise.policies.neighbours.logistic import OFUGLB, LogisticCodeUCB
from driftwise.policies.neighbours.mirror import GLBOMD
from driftwise.policies.neighbours.save import RestartedSAVE
from driftwise.policies.neighbours.weighted_oful import RestartedWeightedOFUL
from driftwise.policies.optimistic import LogisticUCB2, OFULog, PiecewiseUCB
from driftwise.policies.plain import kinds_of, restored
from driftwise.policies.sampling import LinearSampling, PosteriorSampling
from driftwise.policies.self_concordant import DiscountedSelfConcordantUCB, SelfConcordantUCB
from driftwise.theory import tuning as formulas

_WANG = "Wang, Zhao, Zhou 2023"


@dataclass(frozen=True)
class Problem:
    """What the user knows. A tuning reads what it needs, and gets it or a BadInput."""

    name: str
    dim: int
    known: Mapping[str, Any] = field(default_factory=dict)
    fields: Mapping[str, Any] = field(default_factory=dict)

    def __getattr__(self, fact: str) -> Any:
        if fact not in _CHECKS:
            raise AttributeError(fact)
        value = self.known.get(fact)
        if value is None:
            wanted = f"{_MEANING[fact]}, which {self.name} is tuned with"
            raise BadInput(fact, value, wanted, f"pass {fact}=, or use a policy that needs none")
        return _CHECKS[fact](value)

    @property
    def slopes(self) -> tuple[float, float]:
        """k and c of the link on the ball."""
        given = {name: self.fields.get(name) for name in ("S", "L")}
        S, L = (1.0 if value is None else real(name, value, 0.0, low_open=True) for name, value in given.items())
        return constants(self.fields.get("link", "logistic"), S, L)


_CHECKS: dict[str, Callable[[Any], float]] = {
    "horizon": lambda value: whole("horizon", value, 1, "pass the number of rounds"),
    "path_length": lambda value: real("path_length", value, 0.0, way_out="pass the length of θ's path, P_T"),
    "changes": lambda value: real("changes", value, 0.0, way_out="pass the number of times θ changes, Γ_T"),
}
_MEANING = {"horizon": "the number of rounds", "path_length": "the path length P_T", "changes": "Γ_T, changes of θ"}


class Row(NamedTuple):
    """One algorithm: the fixed fields of `policy`, and those that its theorem tunes to a problem."""

    name: str
    family: str
    memory: str
    adaptation: str
    reference: str
    needs: tuple[str, ...]
    policy: type[Any]
    tune: Mapping[str, Callable[[Problem], Any]]
    fixed: Mapping[str, Any] = MappingProxyType({})
    # Other memories that `tuning` selects: that of the algorithm's own source, or the paper's formula with k itself.
    other: Mapping[str, Callable[[Problem], Any]] = MappingProxyType({})


def _keep(p: Problem) -> Keep:
    return Keep()


def _lb_fade(p: Problem) -> Fade:
    return Fade(formulas.lb_forget(p.dim, p.horizon, p.path_length))


def _glb_fade(p: Problem) -> Fade:
    return Fade(formulas.glb_forget(p.dim, p.horizon, p.path_length, *p.slopes))


def _scb_fade(p: Problem) -> Fade:
    return Fade(formulas.scb_forget(p.dim, p.horizon, p.path_length, p.slopes[0]))


def _sc_d_fade(p: Problem) -> Fade:
    return Fade(formulas.sc_d_glucb_forget(p.dim, p.horizon, p.changes, p.slopes[1]))


def _bvd_fade(p: Problem) -> Fade:
    return Fade(formulas.bvd_forget(p.dim, p.horizon, p.path_length))


def _pw_fade(p: Problem) -> Fade:
    return Fade(formulas.pw_forget(p.dim, p.horizon, p.changes))


def _window(p: Problem) -> Window:
    return Window(formulas.window_length(p.dim, p.horizon, p.path_length))


def _restart(p: Problem) -> Restart:
    return Restart(formulas.restart_period(p.dim, p.horizon, p.path_length))


def _linear(memory: Callable[[Problem], Any]) -> dict[str, Callable[[Problem], Any]]:
    """λ = d (Theorem 1) and δ = 1/T. The horizon itself is passed only to a radius that divides δ over it."""
    return {
        "memory": memory,
        "lam": lambda p: float(p.dim),
        "delta": lambda p: 1.0 / max(2, p.horizon),
        "horizon": lambda p: p.known.get("horizon") if p.fields.get("uniform") is True else None,
    }


_SOURCE: dict[str, Callable[[Problem], Any]] = {
    "fade": lambda p: Fade(formulas.d_linucb_forget(p.dim, p.horizon, p.path_length)),
    "window": lambda p: Window(formulas.cheung_window(p.dim, p.horizon, p.path_length)),
    "restart": lambda p: Restart(formulas.zhao_period(p.dim, p.horizon, p.path_length)),
}
_PRINTED: dict[str, Callable[[Problem], Any]] = {
    "GLB": lambda p: Fade(formulas.glb_forget(p.dim, p.horizon, p.path_length, *p.slopes, printed=True)),
    "SCB": lambda p: Fade(formulas.scb_forget(p.dim, p.horizon, p.path_length, p.slopes[0], printed=True)),
}


def _glm(
    memory: Callable[[Problem], Any], lam: Callable[[Problem], float]
) -> dict[str, Callable[[Problem], Any]]:
    """δ = 1/T, and the ridge as the paper's experiments set it."""
    return {
        "memory": memory,
        "lam": lam,
        "delta": lambda p: 1.0 / max(2, p.horizon),
        "horizon": lambda p: p.known.get("horizon"),
    }


def _lam_dim(p: Problem) -> float:
    return float(p.dim)


def _lam_glb(p: Problem) -> float:
    """d/c² (Theorem 2)."""
    return p.dim / (p.slopes[1] * p.slopes[1])


def _lam_scb(p: Problem) -> float:
    """d log T/c (Theorem 3)."""
    return p.dim * log(max(2, p.horizon)) / p.slopes[1]


def _lam_log(p: Problem) -> float:
    """d log T (Russac et al. 2021)."""
    return p.dim * log(max(2, p.horizon))


_DRIFT = ("dim", "horizon", "path_length")
_STATIC = ("dim", "horizon")
_JUMPS = ("dim", "horizon", "changes")

ROWS: tuple[Row, ...] = (
    Row("LB-WeightUCB", "linear", "fade", "none", f"{_WANG}, Algorithm 1", _DRIFT, LinearUCB, _linear(_lb_fade)),
    Row("OFUL", "linear", "keep", "none", "Abbasi-Yadkori, Pál, Szepesvári 2011", _STATIC, LinearUCB, _linear(_keep)),
    Row("D-LinUCB", "linear", "fade", "none", "Russac, Vernade, Cappé 2019, Algorithm 1", _DRIFT, LinearUCB,
        _linear(_lb_fade), {"two_matrix": "correct"}, {"source": _SOURCE["fade"]}),
    Row("SW-UCB", "linear", "window", "none", "Cheung, Simchi-Levi, Zhu 2019, Algorithm 1", _DRIFT, LinearUCB,
        _linear(_window), {"radius": "cheung"}, {"source": _SOURCE["window"]}),
    Row("RestartUCB", "linear", "restart", "none", "Zhao, Zhang, Jiang, Zhou 2020, Algorithm 1", _DRIFT, LinearUCB,
        _linear(_restart), other={"source": _SOURCE["restart"]}),
    Row("D-LinTS", "linear", "fade", "none", "Kim, Tewari 2020", _DRIFT, LinearSampling,
        _linear(_lb_fade), {"drawn": "theta"}),
    Row("D-RandLinUCB", "linear", "fade", "none", "Kim, Tewari 2020", _DRIFT, LinearSampling,
        _linear(_lb_fade), {"drawn": "multiplier", "radius": "weighted"}),
    Row("GLM-UCB", "GLB", "keep", "none", "Filippi, Cappé, Garivier, Szepesvári 2010, with a ridge", _STATIC, GLMUCB,
        _glm(_keep, _lam_dim)),
    Row("GLB-WeightUCB", "GLB", "fade", "none", f"{_WANG}, Algorithm 2", _DRIFT, GLMUCB, _glm(_glb_fade, _lam_glb),
        other={"printed": _PRINTED["GLB"]}),
    Row("GLB-SW", "GLB", "window", "none", "the window twin of GLB-RestartUCB", _DRIFT, GLMUCB,
        _glm(_window, _lam_dim)),
    Row("GLB-RestartUCB", "GLB", "restart", "none", "GLM-UCB restarted, not eq. 15 of Zhao et al. 2020", _DRIFT, GLMUCB,
        _glm(_restart, _lam_dim), other={"source": _SOURCE["restart"]}),
    Row("LogUCB1", "SCB", "keep", "none", "Faury, Abeille, Calauzènes, Fercoq 2020, Algorithm 1", _STATIC,
        SelfConcordantUCB, _glm(_keep, _lam_scb)),
    Row("SCB-WeightUCB", "SCB", "fade", "none", f"{_WANG}, Algorithm 3", _DRIFT, SelfConcordantUCB,
        _glm(_scb_fade, _lam_scb), other={"printed": _PRINTED["SCB"]}),
    Row("SCB-SW", "SCB", "window", "none", "the window twin of SCB-RestartUCB", _DRIFT, SelfConcordantUCB,
        _glm(_window, _lam_scb)),
    Row("SCB-RestartUCB", "SCB", "restart", "none", "LogUCB1 restarted, not eq. 15 of Zhao et al. 2020", _DRIFT,
        SelfConcordantUCB, _glm(_restart, _lam_scb), other={"source": _SOURCE["restart"]}),
    Row("D-GLM-TSL", "GLB", "fade", "none", "GLM-TSL of Kveton et al. 2020, discounted", _DRIFT, PosteriorSampling,
        {"memory": _scb_fade, "horizon": lambda p: p.known.get("horizon")}),
    Row("SC-D-GLUCB", "SCB", "fade", "none", "Russac, Faury, Cappé, Garivier 2021", _JUMPS,
        DiscountedSelfConcordantUCB, _glm(_sc_d_fade, _lam_log)),
    Row("BVD-GLM-UCB", "GLB", "fade", "none", "Faury, Russac, Abeille, Calauzènes 2021", _DRIFT, BVDGLMUCB,
        _glm(_bvd_fade, _lam_dim)),
    Row("SCB-PW-WeightUCB", "SCB", "fade", "none", f"{_WANG}, Appendix D", _JUMPS, PiecewiseUCB,
        _glm(_pw_fade, _lam_scb)),
    Row("OFULog", "SCB", "keep", "none", "Abeille, Faury, Calauzènes 2021, Algorithm 1; radius of Faury et al. 2020",
        _STATIC, OFULog,
        _glm(_keep, _lam_log)),
    Row("OFULog-r", "SCB", "keep", "none", "Abeille, Faury, Calauzènes 2021, Algorithm 2", _STATIC, OFULog,
        _glm(_keep, _lam_log), {"relaxed": True}),
    Row("Logistic-UCB-2", "SCB", "keep", "none", "Faury, Abeille, Calauzènes, Fercoq 2020, Algorithm 2", _STATIC,
        LogisticUCB2, _glm(_keep, _lam_log)),
)  # fmt: skip
_BY_NAME = {row.name: row for row in ROWS}


def _source_ridge(p: Problem) -> float:
    """λ/c with λ = 1: the source's V has the ridge λ/c, its estimating equation λ."""
    return 1.0 / p.slopes[1]


def _jump_window(p: Problem) -> Window:
    return Window(1.0 / formulas.pw_forget(p.dim, p.horizon, p.changes))


def _plain_oful(p: Problem) -> Compiled:
    return _tuned(_BY_NAME["OFUL"], p, {one: p.fields[one] for one in ("S", "L", "R") if one in p.fields})


_RUSSAC_2020, _FAURY_2022 = "Russac, Cappé, Garivier 2020", "Faury, Abeille, Jun, Calauzènes 2022"
_AS_CODED: dict[str, Callable[[Problem], Any]] = {
    "memory": _keep, "lam": _lam_dim, "delta": lambda p: 0.05, "horizon": lambda p: p.known.get("horizon"),
}  # fmt: skip
# Published algorithms that `catalogue` leaves out: points of existing pieces, and policies that no kernel plays.
NEIGHBOURS: tuple[Row, ...] = (
    Row("D-GLUCB", "GLB", "fade", "none", f"{_RUSSAC_2020}, discounted", _JUMPS, GLMUCB, _glm(_pw_fade, _source_ridge)),
    Row("SW-GLUCB", "GLB", "window", "none", f"{_RUSSAC_2020}, in a window", _JUMPS, GLMUCB,
        _glm(_jump_window, _source_ridge)),
    Row("GLM-UCB-code", "GLB", "keep", "none", f"{_FAURY_2022}, as logistic_bandit has it", _STATIC, LogisticCodeUCB,
        _AS_CODED),
    Row("LogUCB1-code", "SCB", "keep", "none", f"{_FAURY_2022}, as logistic_bandit has it", _STATIC, LogisticCodeUCB,
        _AS_CODED, {"constants": "log"}),
    Row("OFUGLB", "SCB", "keep", "none", "Lee, Yun, Jun 2024", _STATIC, OFUGLB,
        {one: rule for one, rule in _glm(_keep, _lam_dim).items() if one != "lam"}),
    Row("GLB-OMD", "SCB", "keep", "none", "Zhang, Xu, Zhao, Sugiyama 2025, Algorithm 1", ("dim",), GLBOMD, {}),
    Row("LinTS", "linear", "keep", "none", "Agrawal, Goyal 2013; Kim, Tewari 2020 at γ = 1", _STATIC, LinearSampling,
        _linear(_keep), {"drawn": "theta"}),
    Row("dLinUCB", "linear", "detects", "none", "Wu, Iyer, Wang 2018", ("dim",), DLinUCB, {}),
    Row("GLR+OFUL", "linear", "detects", "none", "after Gerogiannis et al. 2025, forced plays a stand-in", _STATIC,
        GLRRestart, {"arms": lambda p: p.dim, "horizon": lambda p: p.horizon, "base": _plain_oful}),
    Row("Restarted-WeightedOFUL+", "linear", "restart", "none", "Wang, Xie, Chen, Lui, Zhou 2025, Algorithm 1",
        ("dim", "horizon"), RestartedWeightedOFUL, {"window": lambda p: p.horizon}),
    Row("Restarted-SAVE+", "linear", "restart", "none", "Wang, Xie, Chen, Lui, Zhou 2025, Algorithm 2",
        ("dim", "horizon"), RestartedSAVE, {"window": lambda p: p.horizon}),
    Row("EXP3.S", "arms", "shares", "none", "Auer, Cesa-Bianchi, Freund, Schapire 2002", _DRIFT, Exp3S,
        {"arms": lambda p: p.dim, "share": lambda p: 1.0 / p.horizon,
         "mix": lambda p: formulas.exp3_mix(p.dim, p.horizon, p.path_length)}),
)  # fmt: skip
_NEIGHBOURS = {row.name: row for row in NEIGHBOURS}

# Exploration of a bank made by name: the theorem's radii are loose, and this factor on the whole of them did well in
# every world of docs/unknown-drift.md. Pass exploration=1 for the theorem's.
BANK_EXPLORATION = 0.3

# The grid of BOB over a base with that memory.
_GRIDS: dict[str, Callable[[], tuple[Any, ...]]] = {
    "fade": fades,
    "window": lambda: tuple(Window(rounds) for rounds in MEMORIES if math.isfinite(rounds)),
    "restart": lambda: tuple(Restart(rounds) for rounds in MEMORIES if math.isfinite(rounds)),
}


class Wrapper(NamedTuple):
    """One kind of adaptation: what it wraps, its source, and what it needs to know."""

    prefix: str
    adaptation: type[Adaptive]
    fits: Callable[[Row], bool]
    reference: str
    needs: tuple[str, ...]


WRAPPERS: tuple[Wrapper, ...] = (
    Wrapper("MASTER", Master, lambda row: row.memory == "keep", "Wei, Luo 2021", ("dim", "horizon")),
    Wrapper("BOB", BanditOverBandit, lambda row: row.memory in _GRIDS, "Cheung, Simchi-Levi, Zhu 2019",
            ("dim", "horizon")),
    Wrapper("Bank", FadeBank, lambda row: row.memory == "fade", "ours: a bank of discounts", ("dim",)),
)  # fmt: skip
_BASES = (LinearUCB, GLMUCB, SelfConcordantUCB)
ADAPTIVE: dict[str, tuple[Wrapper, Row]] = {
    f"{wrapper.prefix}+{row.name}": (wrapper, row)
    for wrapper in WRAPPERS
    for row in ROWS
    if wrapper.fits(row) and row.policy in _BASES and "two_matrix" not in row.fixed
}


# The default, which needs only dim.
AUTO = "Auto"


def catalogue() -> list[dict[str, Any]]:
    """The named algorithms: name, family, memory, adaptation, reference, and what `make` needs to know."""
    public = ("name", "family", "memory", "adaptation", "reference", "needs")
    plain = [{key: getattr(row, key) for key in public} for row in ROWS]
    adaptive = [
        {
            "name": name,
            "family": row.family,
            "memory": row.memory,
            "adaptation": wrapper.prefix,
            "reference": wrapper.reference,
            "needs": wrapper.needs,
        }
        for name, (wrapper, row) in ADAPTIVE.items()
    ]
    auto = {"name": AUTO, "family": "linear", "memory": "fade", "adaptation": "Auto",
            "reference": "ours: the default, needs only dim", "needs": ("dim",)}  # fmt: skip
    return [*plain, *adaptive, auto]


def neighbours() -> list[dict[str, Any]]:
    """The algorithms of the papers around ours, as rows of `catalogue`: `make` makes them too (docs/lab/field)."""
    public = ("name", "family", "memory", "adaptation", "reference", "needs")
    return [{key: getattr(row, key) for key in public} for row in NEIGHBOURS]


def make(
    name: str, *, dim: int, horizon: int | None = None, path_length: float | None = None, changes: float | None = None,
    tuning: Literal["paper", "source", "printed"] = "paper", **fields: Any,
) -> Compiled:
    """A named algorithm with its theorem's tuning; any field of its policy may be given instead.

    δ = 1/T as in the paper's experiments. With the printed radii that is the chance of a failure at one round; with
    uniform=True, of any failure (docs/repairs.md). tuning="source" forgets as the algorithm's own source says, in
    D-LinUCB, SW-UCB, RestartUCB and its twins; BOB takes its source's block and grid. tuning="printed" takes k itself
    where the experiments take max(k, 1), in GLB- and SCB-WeightUCB.

    A policy that adapts ("BOB+…", "MASTER+…", "Bank+…") does not get path_length or changes, and takes the fields of
    its base and its own. "Auto" needs only dim, and link="logistic" if rewards are clicks; S and R, which it learns,
    are not used. A name of `neighbours()` that no kernel plays gives a policy with start, choose and learn, like one of
    the user's own.
    """
    one_of("name", name, [*_BY_NAME, *ADAPTIVE, AUTO, *_NEIGHBOURS])
    whole("dim", dim, 1, "pass the number of features of an arm")
    known = {"horizon": horizon, "path_length": path_length, "changes": changes}
    problem = Problem(name, int(dim), known, fields)
    for fact, value in known.items():
        if value is not None:
            getattr(problem, fact)
    one_of("tuning", tuning, ["paper", *_other_tunings(name)])
    if name == AUTO:
        _known_fields(name, Auto, fields, ("S", "R"))
        return Auto(dim=int(dim), **{one: value for one, value in fields.items() if one not in ("S", "R")})
    if name in _NEIGHBOURS:
        return _neighbour(_NEIGHBOURS[name], problem)
    if name in ADAPTIVE:
        return _adaptive(name, problem, tuning)
    return _tuned(_BY_NAME[name], problem, fields, tuning)


def _other_tunings(name: str) -> list[str]:
    """The values of `tuning` beside "paper"."""
    if name in _BY_NAME:
        return list(_BY_NAME[name].other)
    return ["source"] if name in ADAPTIVE and ADAPTIVE[name][0].adaptation is BanditOverBandit else []


def _tuned(row: Row, problem: Problem, fields: Mapping[str, Any], tuning: str = "paper") -> Compiled:
    _known_fields(problem.name, row.policy, fields)
    tune = {**row.tune, "memory": row.other[tuning]} if tuning in row.other else row.tune
    tuned = {one: rule(problem) for one, rule in tune.items() if one not in fields}
    made: Compiled = row.policy(**{"dim": problem.dim, **row.fixed, **tuned, **fields})
    return made


def _neighbour(row: Row, problem: Problem) -> Compiled:
    """Facts of a world for which its policy has no field are not passed to it."""
    given = {one.name for one in dataclasses.fields(row.policy)}
    facts = ("S", "L", "R")
    fields = {one: value for one, value in problem.fields.items() if one in given or one not in facts}
    return _tuned(row, problem, fields)


def _known_fields(name: str, policy: type, fields: Mapping[str, Any], also: Iterable[str] = ()) -> None:
    allowed = [one.name for one in dataclasses.fields(policy) if one.name not in ("dim", "horizon", "base")]
    for one in fields:
        one_of(f"field of {name}", one, [*allowed, *also])


def _bob_grid(row: Row, block: int) -> tuple[Any, ...]:
    """The windows of BOB's source as memories of the base's kind. A memory of one round cannot be a discount."""
    rounds = formulas.bob_grid(block)
    kinds: dict[str, Callable[[int], Any]] = {"window": Window, "restart": Restart, "fade": lambda n: Fade(1.0 / n)}
    return tuple(kinds[row.memory](n) for n in rounds if n > 1 or row.memory != "fade")


def _adaptive(name: str, problem: Problem, tuning: str) -> Compiled:
    """The wrapper's fields go to the wrapper, the others to a base that itself forgets nothing."""
    wrapper, row = ADAPTIVE[name]
    own = {one.name for one in dataclasses.fields(wrapper.adaptation)} - {"base", "horizon"}
    outer = {one: value for one, value in problem.fields.items() if one in own}
    inner = {one: value for one, value in problem.fields.items() if one not in own}
    _known_fields(name, row.policy, inner, own)
    inner.setdefault("memory", Keep())
    if row.fixed.get("radius") == "cheung":  # a constant radius belongs to one window; a grid needs that of E(n)
        inner.setdefault("radius", "weighted")
    if wrapper.adaptation is FadeBank:
        inner.setdefault("exploration", BANK_EXPLORATION)
        if row.policy is not LinearUCB:
            inner.setdefault("estimate", "one-pass")
        if problem.known["horizon"] is None:  # δ = 1/max(2, t), and log T in λ is that of the longest finite memory
            inner.setdefault("delta", None)
            finite = [rounds for rounds in checked_memories(outer.get("memories", MEMORIES)) if math.isfinite(rounds)]
            known = {**problem.known, "horizon": int(max(finite, default=2.0))}
            base = _tuned(row, dataclasses.replace(problem, known=known), inner)
            return FadeBank(base=base, **outer)  # type: ignore[arg-type]
    else:
        outer["horizon"] = problem.horizon
    if wrapper.adaptation is BanditOverBandit:
        if tuning == "source":
            outer.setdefault("block", formulas.bob_block(problem.dim, problem.horizon))
        grid = _bob_grid(row, outer["block"]) if tuning == "source" else _GRIDS[row.memory]()
        outer.setdefault("grid", grid)
    return wrapper.adaptation(base=_tuned(row, problem, inner), **outer)  # type: ignore[arg-type]


def restored_policy(data: Any, way_out: str) -> Compiled:
    """The policy of this driftwise that plain data describes, or a BadInput."""
    policy = restored(data, kinds_of(Compiled, Memory), way_out)
    if not isinstance(policy, Compiled):
        raise BadInput("policy", f"{policy!r}"[:80], "a policy of this driftwise", way_out)
    return policy


def called(policy: object) -> str:
    """The name of a policy for tables: that of the catalogue if its class has one there, otherwise its class."""
    return type(policy).__name__
