"""Colours as light, for tests of visibility."""

import numpy as np


def coded(hue):
    """Red, green and blue of "#rrggbb" between 0 and 1, as they are written."""
    return np.array([int(hue[i : i + 2], 16) for i in (1, 3, 5)]) / 255


def linear(colours):
    """As light: sRGB's curve undone."""
    return np.where(colours <= 0.04045, colours / 12.92, ((colours + 0.055) / 1.055) ** 2.4)


def luminance(colours):
    """Relative luminance, along the last axis."""
    return linear(colours) @ [0.2126, 0.7152, 0.0722]
