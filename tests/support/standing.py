"""Layouts of PageRank's entries on a device, chosen without regard to cost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from delegraph.kernels.gpu.device import Device
from delegraph.kernels.gpu_programs import locality, rows, tiles
from delegraph.kernels.gpu_programs.rows import CutRows, Cuts
from delegraph.kernels.gpu_programs.tiles import Tiling


def standing(
    monkeypatch: pytest.MonkeyPatch, choose: Callable[[int, int], Cuts | Tiling]
) -> list[bool]:
    """Make entries stand as ``choose`` says, by the numbers of rows and of vertices.

    Returns a list that receives, each time that entries are placed, whether the layout was made.
    """
    layouts: list[bool] = []

    def watched(make: Callable[..., Any]) -> Callable[..., Any]:
        def and_seen(*arguments: Any) -> Any:
            layout = make(*arguments)
            layouts.append(layout is not None)
            return layout

        return and_seen

    def chosen(device: Device, cut: CutRows, vertices: int, kind: Any) -> Cuts | Tiling:
        return choose(cut.count, vertices)

    monkeypatch.setattr(locality, "choose", chosen)
    monkeypatch.setattr(tiles, "tile_rows", watched(tiles.tile_rows))
    monkeypatch.setattr(rows, "in_columns", watched(rows.in_columns))
    return layouts
