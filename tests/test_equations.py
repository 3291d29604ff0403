"""Every equation that the site shows beside a function is what the function computes."""

import math
import tomllib
from pathlib import Path

import numpy as np
import pytest

import driftwise as dw

FILE = Path(__file__).resolve().parent.parent / "docs" / "site" / "equations.toml"


def naive(tex_name):
    """The equations of docs/site/equations.toml again, written from its lines."""
    d, lam, delta, S, L, R, c, k, m = 3, 2.5, 0.01, 1.3, 1.1, 0.7, 0.2, 0.25, 1.0
    n, w, T, P, Γ, forget, D, t = 40, 30, 500, 4.0, 5, 0.02, 60, 77
    γ, log, sqrt = 1 - forget, math.log, math.sqrt
    E = sum(γ ** (2 * s) for s in range(n))
    r, ld, kk = lam * c, log(1 / delta), max(k, 1)
    path = np.random.default_rng(0).standard_normal((12, d))
    steps = [np.linalg.norm(path[i] - path[i + 1]) for i in range(11)]
    bias = L**2 * sqrt(d / lam) * sum(sqrt(γ ** (11 - p) * (1 - γ**p) / (1 - γ)) * steps[p - 1] for p in range(1, 12))
    E11, ET = (sum(γ ** (2 * s) for s in range(end)) for end in (11, T))

    def beta(E, logs, c=1.0):
        return sqrt(lam) * c * S + R * sqrt(2 * logs + d * log(1 + L**2 * E / (lam * d)))

    def tilde(E, logs):
        noise = sqrt(r) / (2 * m * L) + 2 * m * L / sqrt(r) * (logs + d * log(2))
        return noise + d * m * L / sqrt(r) * log(1 + L**2 * k * E / (r * d)) + sqrt(r) * S

    potential = sqrt(T * log(1 / γ) + log(1 + L**2 / (lam * d) * (1 - γ**T) / (1 - γ)))
    width, drift = sqrt(2 * max(1, L**2 / lam) * d * T) * potential, sqrt(d / lam) * P / (1 - γ) ** 1.5 * L**2
    root = sqrt(1 + 2 * S * L)
    common = {"dim": d, "horizon": T, "path_length": P, "forget": forget, "lam": lam, "S": S, "L": L}
    th, tail, DT = dw.theory, γ**D / (1 - γ), math.ceil(log(T) / log(1 / γ))
    spread = 2 * max(1, L**2 * k / r) * d
    spread *= T * log(1 / γ) + log(1 + L**2 * k / (r * d) * (1 - γ**T) / (1 - γ))
    far = (1 + 2 * S * L) * 2.0 * sqrt((1 + L**2 * k * tail / r) * spread)
    return {
        "geometric": (th.geometric(forget, n), E),
        "lb_radius": (th.lb_radius(E, d, lam, ld, S, L, R), beta(E, ld)),
        "cheung_radius": (th.cheung_radius(w, d, lam, ld, S, L, R),
            sqrt(lam) * S + R * sqrt(d * log((1 + w * L**2 / lam) / delta))),
        "glb_radius": (th.glb_radius(E, d, lam, ld, S, L, R, c), beta(E, ld, c)),
        "scb_radius": (th.scb_radius(E, d, r, ld, S, L, m, k), tilde(E, ld)),
        "ofulog_radius": (th.ofulog_radius(t, d, lam, ld, S),
            sqrt(lam) * (S + 0.5) + 2 / sqrt(lam) * ld + d / sqrt(lam) * log(4 * (1 + t / (4 * d * lam)))),
        "pw_radius": (th.pw_radius(D, forget, d, r, ld, S, L, m, k, False),
            (2 * L**2 * S * k + L * m) / sqrt(r) * tail + tilde((1 - γ ** (2 * D)) / (1 - γ), ld)),
        "lb_forget": (th.lb_forget(d, T, P), max(1 / T, sqrt(P / (d * T)))),
        "glb_forget": (th.glb_forget(d, T, P, k, c), max(1 / T, sqrt(kk * c * P / (d * T)))),
        "scb_forget": (th.scb_forget(d, T, P, k), max(1 / T, sqrt(kk * P / (d * T)))),
        "pw_forget": (th.pw_forget(d, T, Γ), max(1 / T, (Γ / (d * T)) ** (2 / 3))),
        "bvd_forget": (th.bvd_forget(d, T, P), (P / (sqrt(d) * T)) ** (2 / 5)),
        "sc_d_glucb_forget": (th.sc_d_glucb_forget(d, T, Γ, c), max(1 / T, (sqrt(c) * Γ / (d * T)) ** (2 / 3))),
        "pw_delay": (th.pw_delay(forget, T), math.ceil(log(T) / log(1 / γ))),
        "restart_period": (th.restart_period(d, T, P), max(1, math.floor(d**0.25 * sqrt(T / (1 + P))))),
        "window_length": (th.window_length(d, T, P), max(1, math.floor(d**0.25 * sqrt(T / (1 + P))))),
        "glm_multiplier": (th.glm_multiplier(k, c), 2 * k / c),
        "scb_multiplier": (th.scb_multiplier(k, c, S, L), 2 * root * k / sqrt(c)),
        "path_length": (th.path_length(path), sum(steps)),
        "change_number": (th.change_number(np.repeat(path, 2, axis=0)), 11),
        "bias_bound": (th.bias_bound(path, forget, lam, L), bias),
        "lb_estimation_bound": (th.lb_estimation_bound(path, forget, 0.3, lam=lam, delta=delta, S=S, L=L, R=R),
            bias + 0.3 * beta(E11, ld)),
        "lb_regret_bound": (th.lb_regret_bound(**common, R=R), 4 * drift + 2 * beta(ET, log(2 * T**2)) * width),
        "glb_regret_bound": (th.glb_regret_bound(**common, R=R, k=k, c=c),
            8 * k**2 / c * drift + 4 * k / c * beta(ET, log(2 * T**2), c) * width),
        "scb_regret_bound": (th.scb_regret_bound(**common, m=m, k=k, c=c),
            8 * root * k**2 / c * drift + L * DT * P * min(m, 2 * k * S * L)
            + 4 * root * k / sqrt(c) * tilde(ET, th.drifting_log(log(2 * T**2), r, L, m, γ**DT / (1 - γ))) * width),
        "pw_regret_bound": (th.pw_regret_bound(dim=d, horizon=T, changes=Γ, gap=0.9, delay=D, forget=forget, reg=r,
            rho=2.0, S=S, L=L, k=k, c=c), Γ * D * 0.9 + 2 * sqrt(k * T) * far + 2 * k / c * far**2),
        "uniform_log": (th.uniform_log(ld, t, T), log(T / delta)),
        "drifting_log": (th.drifting_log(ld, r, L, m, tail), ld + (math.e - 1) * r / (4 * m**2 * L**2) + tail / 2),
        "abeille_radius": (th.abeille_radius(t, d, lam, ld, S),
            sqrt(lam) * (S + 0.5) + d / sqrt(lam) * log(4 / delta * (1 + t / (16 * d * lam)))),
        "d_linucb_forget": (th.d_linucb_forget(d, T, P), max(1 / T, (P / (d * T)) ** (2 / 3))),
        "cheung_window": (th.cheung_window(d, T, P), math.floor((d * T / P) ** (2 / 3))),
        "zhao_period": (th.zhao_period(d, T, P), math.ceil((d * T / P) ** (2 / 3))),
        "lower_bound": (th.lower_bound(d, T, P), max(d * sqrt(T), d ** (2 / 3) * P ** (1 / 3) * T ** (2 / 3))),
    }[tex_name]  # fmt: skip


EQUATIONS = tomllib.loads(FILE.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", [name.removeprefix("theory.") for name in EQUATIONS if name.startswith("theory.")])
def test_an_equation_on_the_site_is_what_its_function_computes(name):
    computed, written = naive(name)
    assert computed == pytest.approx(written, rel=1e-12)


def test_equations_belong_to_public_names():
    for name in EQUATIONS:
        value = dw if hasattr(dw, name.partition(".")[0]) else dw.research
        for part in name.split("."):
            value = getattr(value, part)
        assert callable(value)
