"""The paper's experiments by name, and the specs of each. The specs are data, in specs/."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import Path

from driftwise._internal.validate import one_of
from driftwise.lab.run.spec import Spec, load, parse

# The panels of the paper and those that go further, by the name on the command line.
EXPERIMENTS: dict[str, tuple[str, ...]] = {
    "lb": ("lb", "lb_probe"),
    "glb": ("glb_s1", "glb_s1_probe", "glb_s5", "glb_s5_probe"),
    "scb": ("scb_s1", "scb_s1_probe", "scb_s5", "scb_s5_probe"),
    "piecewise": ("pw_s1", "pw_s5"),
    "unknown-drift": ("unknown_drift",),
}
GROWTH = ("growth_lb", "growth_clicks", "growth_pw", "growth_c", "growth_c_pw", "growth_adaptive")
# Where P_T is below what a theorem forgets for, and "recovers" the static algorithm.
REGIMES = ("regime_lb", "regime_clicks")
SLIPS = ("russac_slow", "russac_abrupt")
# The panels with radii that hold at all rounds, and the linear one with the rivals' own tunings.
UNIFORM = (
    "uniform_lb", "uniform_glb_s1", "uniform_glb_s5", "uniform_scb_s1", "uniform_scb_s5", "uniform_pw_s1",
    "uniform_pw_s5",
)  # fmt: skip
OWN = ("own_tuning",)
SENSITIVITY = (
    "sensitivity_lb", "sensitivity_glb_s1", "sensitivity_glb_s5", "sensitivity_scb_s1", "sensitivity_scb_s5",
)  # fmt: skip
PANELS = tuple(name for names in EXPERIMENTS.values() for name in names)
# Those of the paper, each followed by its probe.
PRINTED = tuple(name for names in ("lb", "glb", "scb") for name in EXPERIMENTS[names])
ALL = (*PANELS, "speed", *GROWTH, *REGIMES, *OWN, *UNIFORM, *SLIPS, *SENSITIVITY)


@cache
def built_in(name: str) -> Spec:
    """A spec that comes with the package, read once: paths of twelve million rounds are measured for it."""
    file = f"{name}.toml"
    return parse((files("driftwise.lab") / "specs" / file).read_text(encoding="utf-8"), file)


def experiment(name: str) -> list[Spec]:
    """The specs of an experiment by its name on the command line; "all" means every experiment."""
    one_of("experiment", name, [*EXPERIMENTS, "all"])
    return [built_in(one) for one in (ALL if name == "all" else EXPERIMENTS[name])]


def _others() -> list[str]:
    """The specs of the package that belong to the papers around it (experiments/field)."""
    names = (one.name.removesuffix(".toml") for one in (files("driftwise.lab") / "specs").iterdir())
    return sorted(name for name in names if name not in ALL)


def find(spec: str) -> Spec:
    """A spec from a file, or one of the package's by its name."""
    if spec.endswith(".toml") or Path(spec).name != spec:
        return load(Path(spec))
    one_of("spec", spec, ["FILE.toml", *ALL, *_others()])
    return built_in(spec)
