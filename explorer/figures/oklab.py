"""OKLab, a colour space in which equal distances look equal (Ottosson 2020).

Formulas from bottosson.github.io/posts/oklab.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Colors = npt.NDArray[np.uint8]  # (n, 3)

_RGB_TO_CONE = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
_CONE_TO_LAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)


def linear(value: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Light that an sRGB value from 0 to 1 stands for."""
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def rgb_to_oklab(rgb: Colors) -> npt.NDArray[np.float64]:
    """sRGB bytes in OKLab: lightness from 0 to 1 and two opponent axes."""
    cone = np.cbrt(linear(np.asarray(rgb, dtype=np.float64) / 255) @ _RGB_TO_CONE.T)
    lab: npt.NDArray[np.float64] = cone @ _CONE_TO_LAB.T
    return lab


def oklab_to_rgb(lab: npt.NDArray[np.float64]) -> Colors:
    """OKLab as sRGB bytes, clipped to what a screen shows."""
    light = (lab @ np.linalg.inv(_CONE_TO_LAB).T) ** 3 @ np.linalg.inv(_RGB_TO_CONE).T
    light = np.clip(light, 0.0, 1.0)
    encoded = np.where(light <= 0.0031308, light * 12.92, 1.055 * light ** (1 / 2.4) - 0.055)
    rgb: Colors = np.rint(encoded * 255).astype(np.uint8)
    return rgb
