"""The road network of a made-up country, which ``delegraph demo`` asks about.

Each town is a square grid of streets. Roads join the gates of towns. Two towns lie on an island,
which no road leaves. The network is the same each time.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

MAP = """\
Ashford --- Brackmere --- Coldwater
   |            |             |
Dunholt ---- Elderby ---- Fenmarch          Kelpness
                |                               |
Hollowell - Greystone ---- Ivorne           Larkholm
   |                          |
   +------- Jasperton --------+
"""
"""The towns and roads, north at the top."""

TOWNS = {
    "Ashford": 21,
    "Brackmere": 17,
    "Coldwater": 15,
    "Dunholt": 13,
    "Elderby": 17,
    "Fenmarch": 11,
    "Greystone": 19,
    "Hollowell": 13,
    "Ivorne": 15,
    "Jasperton": 11,
    "Kelpness": 11,
    "Larkholm": 7,
}
"""The number of streets of each town, from north to south and also from west to east. It is odd:
the square is in the middle.
"""

ROADS = (
    ("Ashford", "East", "Brackmere", "West", 9),
    ("Brackmere", "East", "Coldwater", "West", 12),
    ("Dunholt", "East", "Elderby", "West", 8),
    ("Elderby", "East", "Fenmarch", "West", 10),
    ("Hollowell", "East", "Greystone", "West", 7),
    ("Greystone", "East", "Ivorne", "West", 11),
    ("Ashford", "South", "Dunholt", "North", 6),
    ("Brackmere", "South", "Elderby", "North", 9),
    ("Coldwater", "South", "Fenmarch", "North", 7),
    ("Elderby", "South", "Greystone", "North", 4),
    ("Hollowell", "South", "Jasperton", "West", 8),
    ("Ivorne", "South", "Jasperton", "East", 9),
    ("Kelpness", "South", "Larkholm", "North", 5),
)
"""The town and the gate where a road begins, those where it ends, and its number of segments."""

MAIN_STREET_MINUTES, STREET_MINUTES, ROAD_MINUTES = 1, 2, 3
"""Minutes from one junction to the next."""

Segment = tuple[str, str, int]
"""The ids of two junctions, and the minutes from one to the other."""


def segments() -> Iterator[Segment]:
    """Yield the segments of all streets and roads, each once.

    >>> list(segments())[0]
    ('Ashford/1-1', 'Ashford/1-2', 2)
    """
    for town, streets in TOWNS.items():
        yield from _streets(town, streets)
    for road in ROADS:
        yield from _road(*road)


def write_edge_list(path: Path) -> None:
    """Write the segments as a Parquet file with the columns ``src``, ``dst`` and ``minutes``."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    src, dst, minutes = zip(*segments(), strict=True)
    pq.write_table(pa.table({"src": src, "dst": dst, "minutes": minutes}), path)


def _streets(town: str, streets: int) -> Iterator[Segment]:
    """Yield the segments of a town's streets."""
    middle = streets // 2 + 1
    names = {
        (middle, middle): "Square",
        (1, middle): "North-Gate",
        (streets, middle): "South-Gate",
        (middle, 1): "West-Gate",
        (middle, streets): "East-Gate",
    }

    def junction(row: int, column: int) -> str:
        return f"{town}/{names.get((row, column), f'{row}-{column}')}"

    def minutes(street: int) -> int:
        return MAIN_STREET_MINUTES if street == middle else STREET_MINUTES

    for street in range(1, streets + 1):
        for place in range(1, streets):
            yield junction(street, place), junction(street, place + 1), minutes(street)
            yield junction(place, street), junction(place + 1, street), minutes(street)


def _road(start: str, start_gate: str, end: str, end_gate: str, count: int) -> Iterator[Segment]:
    """Yield the segments of a road. The junctions on a road are numbered from 1."""
    on_road = (f"{start}-{end}/{number}" for number in range(1, count))
    before = f"{start}/{start_gate}-Gate"
    for junction in (*on_road, f"{end}/{end_gate}-Gate"):
        yield before, junction, ROAD_MINUTES
        before = junction
