"""Continuous sets: searches against grids, brute force and ascent from many starts, and their own bounds."""

import math

import numpy as np
import pytest

import driftwise as dw
from driftwise.kernels.links import LINKS
from driftwise.kernels.search import index_form as page
from driftwise.kernels.solvers.eigen import eigen_
from driftwise.policies.searching import Index
from naive_regions import NaiveIndex, ascent, finest, longest, slsqp, vertices


def sheet_of(naive):
    """An index of the library with the numbers of a naive one."""
    d = len(naive.theta)
    index = Index(d)
    index.theta[:], index.A[:] = naive.theta, naive.A
    page.index_form_views(index.form, d).vec[page.TILT] = naive.b
    index.form[page.WEIGHT], index.form[page.SHIFT], index.form[page.CONSTANT_PART] = naive.w, naive.shift, naive.c
    if naive.link is not None:
        index.form[page.KIND], index.form[page.LINK_CODE] = page.SUM, LINKS[naive.link].code
    return index


def found(region, naive):
    """The naive index of the point found, and the bound minus it."""
    peak = region.peak(sheet_of(naive))
    assert region.contains(peak.x)
    value = float(naive(peak.x[None])[0])
    return value, peak.top - value, peak


def hard(rng, dim, kind):
    """θ and A of a state: usual, empty, one arm, tiny ridge, equal eigenvalues, θ = 0, and the corner of the curve."""
    B = rng.standard_normal((dim, dim + 2)) * 10.0 ** rng.uniform(-1, 1)
    lam, theta = 10.0 ** rng.uniform(-3, 2), rng.standard_normal(dim)
    G = B @ B.T
    if kind == "empty":
        G, theta = np.zeros((dim, dim)), np.zeros(dim)
    elif kind == "one arm":
        G = np.outer(B[:, 0], B[:, 0])
        theta = B[:, 0]
    elif kind == "tiny ridge":
        G, lam = 100.0 * np.outer(B[:, 0], B[:, 0]), 1e-8
    elif kind == "equal":
        G = np.zeros((dim, dim))
    elif kind == "zero":
        theta = np.zeros(dim)
    elif kind == "corner":  # θ has no part along the direction that is known least
        Q = np.linalg.qr(rng.standard_normal((dim, dim)))[0]
        G = Q @ np.diag(np.linspace(0.0, 5.0, dim)) @ Q.T
        theta = Q @ np.concatenate([[0.0], rng.standard_normal(dim - 1)]) * 0.1
    A = np.linalg.inv(G + lam * np.eye(dim))
    return theta, (A + A.T) / 2.0


KINDS = ("usual", "empty", "one arm", "tiny ridge", "equal", "zero", "corner")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dim", [2, 3])
def test_on_a_ball_no_point_of_a_fine_grid_is_better(dim, kind):
    for seed in range(6):
        rng = np.random.default_rng([dim, KINDS.index(kind), seed])
        theta, A = hard(rng, dim, kind)
        naive = NaiveIndex(theta, A, 10.0 ** rng.uniform(-2, 1))
        radius = (1.0, 0.3)[seed % 2]
        value, gap, _ = found(dw.Ball(dim, radius), naive)
        scale = max(1.0, abs(value))
        assert value >= finest(naive, dim, radius) - 1e-9 * scale
        assert -1e-12 * scale <= gap <= 1e-9 * scale


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dim", [1, 5, 10, 50])
def test_on_a_ball_no_ascent_from_200_starts_is_better(dim, kind):
    for seed in range(3):
        rng = np.random.default_rng([dim, KINDS.index(kind), seed, 1])
        theta, A = hard(rng, dim, kind)
        naive = NaiveIndex(theta, A, 10.0 ** rng.uniform(-2, 1))
        value, gap, _ = found(dw.Ball(dim), naive)
        scale = max(1.0, abs(value))
        assert value >= ascent(naive, dim, 200, rng, steps=60) - 1e-9 * scale
        assert -1e-12 * scale <= gap <= 1e-9 * scale


@pytest.mark.parametrize("dim", [2, 3, 10, 30])
def test_the_less_theta_lies_along_what_is_known_least_the_closer_to_the_hard_case_and_no_road_is_lost(dim):
    # From one method to the other: parts of 1, 0.1, … down to 1e-15; the point is that of the eigenbasis formula.
    for part in range(16):
        rng = np.random.default_rng([dim, part, 8])
        Q = np.linalg.qr(rng.standard_normal((dim, dim)))[0]
        values, c = np.sort(rng.uniform(0.1, 1.0, dim)), rng.standard_normal(dim)
        c[-1], w = 10.0**-part, 10.0 ** rng.uniform(0.0, 2.5)
        A = Q @ np.diag(values) @ Q.T
        naive = NaiveIndex(Q @ c, (A + A.T) / 2.0, w)
        y = longest(values, c, w)
        value, gap, peak = found(dw.Ball(dim), naive)
        best = float(y @ c + w * math.sqrt(y @ (values * y)))
        assert abs(value - best) <= 1e-12 * best and abs(gap) <= 1e-12 * best
        if part <= 10:  # beyond it rounding changes θ
            assert np.abs(peak.x - Q @ y).max() <= 1e-15 * 10.0**part + 1e-7 / w


@pytest.mark.slow
@pytest.mark.parametrize("dim", [5, 10, 50])
def test_on_a_ball_no_slsqp_from_200_starts_is_better(dim):
    for number, kind in enumerate(KINDS):
        rng = np.random.default_rng([dim, number, 2])
        theta, A = hard(rng, dim, kind)
        naive = NaiveIndex(theta, A, 10.0 ** rng.uniform(-2, 1))
        value, _, _ = found(dw.Ball(dim), naive)
        assert value >= slsqp(naive, dim, 200, rng) - 1e-9 * max(1.0, abs(value))


def test_a_ball_of_slsqp_in_brief():
    rng = np.random.default_rng(7)
    theta, A = hard(rng, 5, "corner")
    naive = NaiveIndex(theta, A, 0.7)
    assert found(dw.Ball(5), naive)[0] >= slsqp(naive, 5, 20, rng) - 1e-9


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("link", ["logistic", "probit", "poisson", "identity"])
def test_sums_of_a_link_and_a_norm_are_searched_for_with_proof(link, dim):
    for number, kind in enumerate(KINDS):
        rng = np.random.default_rng([dim, number, 3])
        theta, A = hard(rng, dim, kind)
        theta = theta / max(1.0, np.sqrt(theta @ theta) / 3.0)
        naive = NaiveIndex(theta, A / np.trace(A), 10.0 ** rng.uniform(-2, 0.5), link=link)
        value, gap, _ = found(dw.Ball(dim), naive)
        scale = max(1.0, abs(value))
        assert value >= finest(naive, dim) - 1e-9 * scale
        assert -1e-12 * scale <= gap <= 1e-9 * scale


@pytest.mark.parametrize("dim", [2, 3, 8])
def test_an_index_seen_from_a_centre_is_found_and_its_bound_is_one(dim):
    # Where two points of the ball tie for a quadratic, the bound is above the largest index; it is never below.
    loose = 0
    for seed in range(12):
        rng = np.random.default_rng([dim, seed, 4])
        theta, A = hard(rng, dim, "usual")
        centre = 0.7 * rng.standard_normal(dim) / math.sqrt(dim)
        naive = NaiveIndex(
            theta, A, 10.0 ** rng.uniform(-1, 1), b=A @ centre, c=float(centre @ A @ centre) + 0.1 * (seed % 2),
            shift=0.3,
        )  # fmt: skip
        value, gap, _ = found(dw.Ball(dim), naive)
        scale = max(1.0, abs(value))
        best = finest(naive, dim) if dim <= 3 else ascent(naive, dim, 100, rng)
        assert value >= best - 1e-9 * scale
        assert -1e-12 * scale <= gap <= 0.1 * scale
        loose += gap > 1e-8 * scale
    assert loose <= 2


@pytest.mark.parametrize("dim", [2, 3])
def test_an_ellipsoid_is_the_ball_it_is_an_image_of(dim):
    for seed in range(8):
        rng = np.random.default_rng([dim, seed, 5])
        theta, A = hard(rng, dim, KINDS[seed % len(KINDS)])
        B = rng.standard_normal((dim, dim))
        E = B @ B.T + 0.1 * np.eye(dim)
        F = np.linalg.cholesky(E)
        w = 10.0 ** rng.uniform(-1, 1)
        value, gap, _ = found(dw.Ellipsoid(E), NaiveIndex(theta, A, w))
        image = NaiveIndex(F.T @ theta, F.T @ A @ F, w)
        assert value >= finest(image, dim) - 1e-9 * max(1.0, abs(value))
        assert abs(gap) <= 1e-9 * max(1.0, abs(value))


def best_vertex_is_found(dim, seeds):
    for seed in range(seeds):
        rng = np.random.default_rng([dim, seed, 6])
        theta, A = hard(rng, dim, KINDS[seed % len(KINDS)])
        low = rng.uniform(-1, 0.5, dim)
        high = low + rng.uniform(0.1, 1.5, dim)
        centre = rng.uniform(low, high) * (seed % 2)
        naive = NaiveIndex(theta, A, 10.0 ** rng.uniform(-2, 1), b=A @ centre, c=float(centre @ A @ centre))
        value, gap, _ = found(dw.Box(low, high), naive)
        best = float(naive(vertices(low, high)).max())
        assert abs(value - best) <= 1e-10 * max(1.0, abs(best))
        assert -1e-11 * max(1.0, abs(best)) <= gap <= 1e-9 * max(1.0, abs(best))


@pytest.mark.parametrize("dim", [1, 2, 5, 9, 12])
def test_a_box_has_its_best_vertex_found(dim):
    best_vertex_is_found(dim, len(KINDS))


@pytest.mark.slow
@pytest.mark.parametrize("dim", range(1, 13))
def test_a_hundred_boxes_of_every_dimension_have_their_best_vertex_found(dim):
    best_vertex_is_found(dim, 100)


def test_a_union_has_the_best_of_its_parts_and_the_first_in_a_tie():
    naive = NaiveIndex(np.array([0.3, -0.2]), np.eye(2), 0.5)
    corner = np.array([[2.0, 0.0], [0.1, 0.1]])
    both = dw.Union(dw.Ball(2), corner)
    value, gap, peak = found(both, naive)
    assert np.array_equal(peak.x, corner[0]) and abs(gap) < 1e-12 and value > found(dw.Ball(2), naive)[0]
    tied = found(dw.Union(np.eye(2), np.eye(2)[::-1]), NaiveIndex([1.0, 1.0], np.eye(2), 1.0))[2]
    assert np.array_equal(tied.x, [1.0, 0.0])
    assert both.reach == 2.0 and both.contains(np.array([0.1, 0.1])) and not both.contains(np.array([1.0, 1.0]))


def test_eigenvalues_are_those_of_the_matrix_however_far_apart():
    for dim in (1, 2, 3, 10, 40):
        for seed in range(10):
            rng = np.random.default_rng([dim, seed])
            Q = np.linalg.qr(rng.standard_normal((dim, dim)))[0]
            A = Q @ np.diag(10.0 ** rng.uniform(-8, 8, dim) if seed % 2 else np.ones(dim)) @ Q.T
            A = (A + A.T) / 2
            values, rows = np.empty(dim), np.empty((dim, dim))
            assert eigen_(A.copy(), values, rows, np.empty(dim))
            assert np.abs(rows.T @ np.diag(values) @ rows - A).max() <= 1e-13 * dim * np.abs(A).max()
            assert np.abs(rows @ rows.T - np.eye(dim)).max() <= 1e-13 * dim


REGIONS = {
    "ball": dw.Ball(3, 2.0), "ellipsoid": dw.Ellipsoid([[2.0, 0.5], [0.5, 1.0]]), "box": dw.Box([-1, 0], [1, 3]),
    "curve": dw.Curve(dw.Polynomial(2), 0.0, 1.0), "union": dw.Union(dw.Ball(2), [[3.0, 0.0]]),
}  # fmt: skip


@pytest.mark.parametrize("name", REGIONS)
def test_draws_are_uniform_arms_of_the_set(name):
    region = REGIONS[name]
    drawn = [region.draw(1, 2, number) for number in range(400)]
    X = np.array([one.x for one in drawn])
    assert all(region.contains(x) for x in X[:50]) and np.sqrt((X**2).sum(axis=1)).max() <= region.reach * (1 + 1e-9)
    assert np.array_equal(region.draw(1, 2, 5).x, drawn[5].x) and len({x.tobytes() for x in X}) > 100
    if name == "ball":  # within half the radius lies 1/8; 5 standard errors are 0.083
        assert abs((np.sqrt((X**2).sum(axis=1)) < 1.0).mean() - 0.125) < 0.083
        assert math.isclose(drawn[0].share, 1.0 / (4.0 / 3.0 * math.pi * 8.0)) and drawn[0].dense
    if name == "box":
        assert math.isclose(drawn[0].share, 1.0 / 6.0)
    if name == "union":
        lists = [one for one in drawn if not one.dense]
        assert abs(len(lists) / 400 - 0.5) < 0.125 and lists[0].share == 0.5


@pytest.mark.parametrize("name", REGIONS)
def test_the_support_is_the_largest_product(name):
    region = REGIONS[name]
    theta = np.random.default_rng(0).standard_normal((5, region.dim))
    points = np.array([region.draw(3, 4, number).x for number in range(3000)])
    products = (points @ theta.T).max(axis=0)
    support = region.support(theta)
    assert (support >= products - 1e-6).all() and (support <= 1.2 * np.abs(products) + 0.2).all()


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: dw.Ball(0), "dim"), (lambda: dw.Ball(2, -1.0), "radius"), (lambda: dw.Ball(2, math.inf), "radius"),
        (lambda: dw.Ellipsoid([[1.0, 0.0], [0.5, 1.0]]), "shape"), (lambda: dw.Ellipsoid([[1.0, 0], [0, -1]]), "shape"),
        (lambda: dw.Box([0.0], [0.0]), "high"), (lambda: dw.Box([0.0], [1.0, 2.0]), "high"),
        (lambda: dw.Box([math.nan], [1.0]), "low"), (lambda: dw.Curve(dw.Polynomial(2), 2.0, 1.0), "high"),
        (lambda: dw.Curve(lambda p: p[:, None], 0.0, 1.0), "features"), (lambda: dw.Curve("price", 0, 1), "features"),
        (lambda: dw.Curve(lambda p: p, 0.0, 1.0, bend=1.0), "features"), (lambda: dw.Polynomial(0), "degree"),
        (lambda: dw.Spline(3, degree=2), "degree"), (lambda: dw.Union(), "parts"),
        (lambda: dw.Union(dw.Ball(2), dw.Ball(3)), "parts"),
    ],
)  # fmt: skip
def test_a_set_that_cannot_be_gets_one_sentence(make, named):
    with pytest.raises(dw.BadInput) as caught:
        make()
    assert str(caught.value).startswith(named) and "wanted" in str(caught.value) and "\n" not in str(caught.value)
