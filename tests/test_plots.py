"""The style of the figures: distinguishable lines, legible labels, the same bytes for the same figure."""

from __future__ import annotations

import itertools
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colours import coded, linear
from driftwise.draw import plots, styles
from driftwise.draw.figure import Axis, Figure, Line, Reference
from driftwise.draw.lettering import line_names
from driftwise.errors import BadInput

pytest.importorskip("matplotlib")

BUILT = {
    "LB": (
        "OFUL", "RestartUCB", "D-LinUCB", "D-LinUCB as published", "LB-WeightUCB", "SW-UCB", "MASTER+OFUL n=0",
        "MASTER+OFUL n=13", "BOB+LB-WeightUCB", "Bank+LB-WeightUCB e=1", "Bank+LB-WeightUCB",
    ),
    "GLB_S1": (
        "GLM-UCB", "GLB-RestartUCB", "GLB-WeightUCB", "GLB-SW", "MASTER+GLM-UCB", "BVD-GLM-UCB", "BVD-GLM-UCB origin",
        "BOB+GLB-WeightUCB", "Bank+GLB-WeightUCB e=1", "Bank+GLB-WeightUCB",
    ),
    "SCB_S1": (
        "LogUCB1", "SCB-RestartUCB", "SCB-WeightUCB", "SCB-SW", "MASTER+LogUCB1", "BOB+SCB-WeightUCB",
        "Bank+SCB-WeightUCB e=1", "Bank+SCB-WeightUCB",
    ),
    "PW_S1": (
        "SCB-PW-WeightUCB", "SCB-PW-WeightUCB convex", "SC-D-GLUCB", "SCB-WeightUCB", "SCB-RestartUCB", "LogUCB1",
        "OFULog-r", "OFULog", "Logistic-UCB-2",
    ),
}  # fmt: skip

# Machado, Oliveira, Fernandes 2009, severity 1, on linear RGB.
SIGHT = {
    "full": np.eye(3),
    "protanopia": np.array([
        [0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998],
    ]),
    "deuteranopia": np.array([
        [0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881],
    ]),
    "tritanopia": np.array([
        [1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900],
    ]),
}  # fmt: skip


def lab(hue, sight):
    """A colour as seen, in CIELAB."""
    seen = np.clip(SIGHT[sight] @ linear(coded(hue)), 0.0, 1.0)
    to_xyz = np.array([[0.4125, 0.3576, 0.1804], [0.2127, 0.7152, 0.0722], [0.0193, 0.1192, 0.9503]])
    ratio = to_xyz @ seen / [0.9505, 1.0, 1.0888]
    x, y, z = np.where(ratio > 0.008856, np.cbrt(ratio), 7.787 * ratio + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def figure(labels, finals, key="LB", trials=5, rounds=120, curves=False):
    rng = np.random.default_rng(1)
    at = 50 * np.arange(1, rounds + 1)
    lines = []
    for label, final in zip(labels, finals, strict=True):
        shape = final * (at / at[-1]) ** 0.8
        regret = shape * (1 + 0.1 * (np.arange(trials) - (trials - 1) / 2)[:, None])
        regret[:, :-1] += rng.normal(0.0, final / 300, (trials, rounds - 1))
        curve = Reference(at, 0.9 * shape, shape, shape) if curves else None
        lines.append(Line(label, regret, np.full(trials, np.nan), curve))
    return Figure(key, "Linear bandits", tuple(at.tolist()), tuple(lines))


def swept(at, scale, labels=BUILT["LB"], **how):
    levels = 100.0 * (1 + np.arange(len(at)))
    lines = tuple(
        Line(label, (i + 1) * levels * np.array([[0.9], [1.1]]), np.full(2, np.nan)) for i, label in enumerate(labels)
    )
    return Figure("swept", "Regret against something", tuple(at), lines, Axis("turns", scale=scale, **how))


def crowded(key="LB"):
    return figure(BUILT[key], [1000.0] * len(BUILT[key]), key, curves=True)


def boxes(picture):
    """The extents of all texts that are drawn, and of those at line ends, in pixels."""
    renderer = picture.canvas.get_renderer()
    picture.draw(renderer)
    texts = list(picture.texts)
    for axis in (axis for axes in picture.axes for axis in (axes.xaxis, axes.yaxis)):
        low, high = axis.get_view_interval()
        texts += [axis.label, *(one.label1 for one in axis.get_major_ticks() if low <= one.get_loc() <= high)]
    texts = [one for one in texts if one.get_text().strip() and one.get_visible()]
    everything = [(one.get_text(), one.get_window_extent(renderer)) for one in texts]
    return everything, [one.get_window_extent(renderer) for one in texts if one.get_gid() == "label"]


def hit(a, b):
    return min(a.x1, b.x1) - max(a.x0, b.x0) > 0.5 and min(a.y1, b.y1) - max(a.y0, b.y0) > 0.5


# Colours.


@pytest.mark.parametrize("key", BUILT)
def test_lines_of_a_figure_differ_in_colour(key):
    assert len(set(map(styles.colour, BUILT[key]))) == len(BUILT[key])


@pytest.mark.parametrize("sight", SIGHT)
@pytest.mark.parametrize("key", BUILT)
def test_lines_of_a_figure_differ_for_every_eye(key, sight):
    for (_, a), (_, b) in itertools.combinations(styles.styles(BUILT[key]).items(), 2):
        assert a.marker != b.marker or np.linalg.norm(lab(a.colour, sight) - lab(b.colour, sight)) > 8


@pytest.mark.parametrize("sight", SIGHT)
def test_hues_of_the_palette_differ_for_every_eye(sight):
    hues = [hue for family, hue in styles.PALETTE.items() if family != "other"]
    assert len(hues) <= 11
    apart = [np.linalg.norm(lab(a, sight) - lab(b, sight)) for a, b in itertools.combinations(hues, 2)]
    assert min(apart) > 14


@pytest.mark.parametrize("key", BUILT)
def test_a_figure_draws_algorithms_in_their_own_colours_and_variants_with_markers(key):
    for label, style in styles.styles(BUILT[key]).items():
        assert style.colour == styles.colour(label)
        assert bool(style.marker) == (style.colour in styles.TINTS.values())


@pytest.mark.parametrize(
    ("base", "variant"),
    [
        ("D-LinUCB", "D-LinUCB as published"), ("MASTER+OFUL n=13", "MASTER+OFUL n=0"), ("OFULog", "OFULog-r"),
        ("Bank+LB-WeightUCB", "Bank+LB-WeightUCB e=1"), ("BVD-GLM-UCB", "BVD-GLM-UCB origin"),
        ("SCB-PW-WeightUCB", "SCB-PW-WeightUCB convex"), ("GLM-UCB", "GLM-UCB R=1/2"),
    ],
)  # fmt: skip
def test_a_variant_has_the_hue_of_its_algorithm(base, variant):
    style = styles.styles([variant, base])
    assert style[variant].hue == style[base].colour == styles.colour(base)
    assert lab(style[variant].colour, "full")[0] > lab(styles.colour(base), "full")[0] + 5


def test_families_keep_their_colour_across_panels():
    assert {styles.colour(f"{family}-WeightUCB") for family in ("LB", "GLB", "SCB")} == {"#0072b2"}
    assert {styles.colour(name) for name in ("OFUL", "GLM-UCB", "LogUCB1")} == {"#000000"}
    for kind in ("RestartUCB {}-RestartUCB", "SW-UCB {}-SW", "BOB+LB-WeightUCB BOB+{}-WeightUCB"):
        names = kind.format("GLB").split() + kind.format("SCB").split()
        assert len(set(map(styles.colour, names))) == 1


def test_every_algorithm_of_the_catalogue_has_a_family():
    from driftwise.policies.names import catalogue

    assert [row["name"] for row in catalogue() if styles.colour(row["name"]) == styles.PALETTE["other"]] == []


@given(st.lists(st.sampled_from([*BUILT["LB"], "mine", "yours", "BOB+SW-UCB", "OFUL a", "OFUL b"]), unique=True))
def test_no_two_lines_of_a_figure_look_alike(labels):
    found = styles.styles(labels)
    assert len(set(found.values())) == len(labels)


# Places of labels.


@given(st.lists(st.floats(0.0, 10.0), min_size=1, max_size=12), st.floats(0.01, 0.8))
def test_spread_labels_keep_order_distance_and_bounds(wanted, gap):
    wanted = np.sort(wanted)
    places = plots.draw_spread(wanted, gap, 0.0, 10.0)
    assert np.all(np.diff(places) >= gap - 1e-9)
    assert places[0] >= 0.0 and places[-1] <= 10.0 + 1e-9
    if len(wanted) == 1 or np.diff(wanted).min() >= gap + 1e-9:
        np.testing.assert_allclose(places, wanted, atol=1e-9)


def test_spread_moves_equal_labels_to_both_sides():
    np.testing.assert_allclose(plots.draw_spread(np.array([5.0, 5.0, 5.0]), 1.0, 0.0, 10.0), [4.0, 5.0, 6.0])


STRANGE = {
    **{f"{key}, equal": lambda key=key: crowded(key) for key in BUILT},
    "all at the bottom": lambda: figure(("far", *BUILT["LB"]), [1e5, *[10.0] * 11]),
    "long names": lambda: figure(["a policy with a name that goes on " * 3, "b"], [10.0, 20.0]),
    "thirty lines": lambda: figure([f"policy {i}" for i in range(30)], [100.0 + i for i in range(30)]),
    "one round, one trial": lambda: figure(("OFUL", "mine"), [3.0, 4.0], trials=1, rounds=1),
    "even": lambda: swept((0.25, 0.5, 1.0, 4.0), "even"),
    "words": lambda: swept([f"a world of kind {i}" for i in range(9)], "even", words="world"),
    "words on a log scale": lambda: swept(("still", "one turn"), "log"),
    "log": lambda: swept((24000, 750, 1500, 6000, 12000), "log"),
    "log with zero": lambda: swept((0, 1, 10), "log", times=True),
    "linear": lambda: swept((0.0, 1.0, 7.0), "linear"),
    "one value": lambda: swept((3.0,), "linear"),
}


@pytest.mark.parametrize("look", [plots._WIDE, plots._NARROW], ids=["wide", "narrow"])
@pytest.mark.parametrize("which", STRANGE)
def test_labels_neither_overlap_nor_leave_the_figure(which, look):
    one = STRANGE[which]()
    with plots._picture([one], look) as picture:
        everything, labels = boxes(picture)
        width, height = picture.get_size_inches() * picture.dpi
    assert len(labels) == len(one.lines)
    for a, b in itertools.combinations(labels, 2):
        assert not hit(a, b)
    for text, box in everything:
        assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= width and box.y1 <= height, text
        if all(box.bounds != label.bounds for label in labels):
            assert not any(hit(box, label) for label in labels), text


def test_panels_side_by_side_keep_out_of_each_other():
    with plots._picture([crowded("LB"), crowded("GLB_S1"), crowded("PW_S1")], plots._WIDE) as picture:
        everything, _ = boxes(picture)
        left, right, _ = (one.get_tightbbox() for one in picture.axes)
    assert left.x1 < right.x0
    for (_, a), (_, b) in itertools.combinations(everything, 2):
        assert not hit(a, b)


def test_the_narrow_figure_can_be_read_at_350_px():
    from matplotlib.text import Text

    with plots._picture([crowded()], plots._NARROW) as picture:
        sizes = [one.get_fontsize() for one in picture.findobj(Text) if one.get_text().strip()]
        width = picture.get_size_inches()[0]
    assert min(sizes) / 72 * 350 / width >= 10


def test_the_narrow_figure_shortens_names_only_where_they_stay_apart():
    names = line_names(figure(("BOB+LB-WeightUCB", "BOB+SW-UCB", "Bank+LB-WeightUCB e=1"), [10.0, 20.0, 30.0]), True)
    assert names == ["BOB+LB-WeightUCB  10", "BOB+SW-UCB  20", "Bank e=1  30"]


def test_a_label_stands_where_its_line_ends_on_a_scale_that_reorders():
    one = swept((100, 1, 10), "log", labels=("OFUL",))
    assert plots._end(one, one.lines[0]) == pytest.approx(100.0)
    assert plots._end(swept((100, 1, 10), "even"), one.lines[0]) == pytest.approx(300.0)


def test_only_a_log_sweep_leaves_out_zero():
    for scale in ("even", "linear", "log"):
        with plots._picture([swept((1, 10, 100), scale)], plots._WIDE) as picture:
            (axes,) = picture.axes
            assert (axes.get_ylim()[0] > 0) == (scale == "log") == (axes.get_yscale() == "log")


def test_a_published_curve_that_two_lines_answer_to_is_drawn_once():
    at = np.array([50.0, 100.0])
    curve = Reference(at, at, at, at)
    lines = tuple(Line(label, np.ones((2, 2)), np.ones(2), curve) for label in ("D-LinUCB", "D-LinUCB as published"))
    with plots._picture([Figure("LB", "", (50, 100), lines)], plots._WIDE) as picture:
        assert sum(line.get_linestyle() == "--" for line in picture.axes[0].lines) == 1


# Files.


def test_the_same_figure_gives_the_same_bytes(tmp_path):
    one = crowded()
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        plots.draw_each(one, tmp_path / name)
        plots.draw([one, swept((1, 10), "log")], tmp_path / name / "both")
    files = sorted(file.name for file in (tmp_path / "first").iterdir())
    assert files == ["LB-narrow.svg", "LB.pdf", "LB.png", "LB.svg", "both.pdf", "both.png", "both.svg"]
    for file in files:
        assert (tmp_path / "first" / file).read_bytes() == (tmp_path / "second" / file).read_bytes()


def test_a_key_with_a_dot_keeps_it(tmp_path):
    plots.draw([figure(("OFUL",), [10.0])], tmp_path / "forget.01")
    assert sorted(file.name for file in tmp_path.iterdir()) == [f"forget.01.{kind}" for kind in ("pdf", "png", "svg")]


def test_an_svg_has_only_colours_that_a_page_can_replace_and_no_background(tmp_path):
    plots.draw_each(crowded(), tmp_path)
    known = {styles.INK, styles.GRID, *styles.PALETTE.values(), *styles.TINTS.values()}
    for name in ("LB.svg", "LB-narrow.svg"):
        text = (tmp_path / name).read_text(encoding="utf-8")
        assert len(text) < 150_000
        written = re.findall(r'style="([^"]*)"', text)
        used = {match for style in written for match in re.findall(r"(?:fill|stroke): (#\w+)", style)}
        assert {styles.INK, styles.GRID, "#000000"} <= used <= known
        # A shape without a fill is black by default on every page, so each shape must have a fill, or none.
        tree = ET.fromstring(text)
        svg = "{http://www.w3.org/2000/svg}"
        assert tree.find(f".//{svg}text") is None and tree.find(f".//{svg}image") is None
        assert not any(one.get("style") or one.get("fill") for one in tree.findall(f".//{svg}rect"))
        assert "fill: #ffffff" not in text and "<metadata" not in text and "<!--" not in text
        filled = [one for one in tree.iter(f"{svg}use") if "#" + "LB" in str(one.attrib) and one.get("style")]
        assert filled and all("fill: " in one.get("style") for one in filled)


def test_ids_of_two_files_differ_so_that_one_page_can_hold_both(tmp_path):
    plots.draw_each(crowded(), tmp_path)
    ids = []
    for name in ("LB.svg", "LB-narrow.svg"):
        text = (tmp_path / name).read_text(encoding="utf-8")
        own = re.findall(r'\bid="([^"]*)"', text)
        assert set(re.findall(r'(?:href="|url\()#([^")]*)', text)) <= set(own)
        assert len(own) == len(set(own))
        ids.append(set(own))
    assert not ids[0] & ids[1]


def test_the_png_is_white_and_the_settings_of_matplotlib_stay(tmp_path):
    import matplotlib as mpl
    from matplotlib.image import imread

    plots.pyplot()
    before = dict(mpl.rcParams)
    plots.draw([crowded()], tmp_path / "a")
    assert dict(mpl.rcParams) == before
    corners = imread(tmp_path / "a.png")[[0, 0, -1, -1], [0, -1, 0, -1]]
    assert np.all(corners == 1.0)


def test_nothing_to_draw_is_refused_in_one_sentence(tmp_path):
    hidden = Figure("a", "", (1,), (Line("OFUL", np.ones((1, 1)), np.ones(1), None, False),))
    for figures in ([], [hidden]):
        with pytest.raises(BadInput, match="at least one line to draw"):
            plots.draw(figures, tmp_path / "a")
