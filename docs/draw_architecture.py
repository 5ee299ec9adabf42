"""In: the package's imports. Out: docs/images/architecture.svg, the rooms and who imports whom.

python docs/draw_architecture.py

A test holds the order of the rooms below and compares the picture with the imports.
"""

import ast
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "workflow" / "fca"
PICTURE = ROOT / "docs" / "images" / "architecture.svg"

#: The rooms and what lives in them. Each imports only from rooms before it.
ROOMS = {
    "interventions": "assignments, draws, static profiles",
    "statistics": "variance, effects, intervals, power",
    "store": "keys, manifests, publication",
    "inputs": "corpora, tokenizers, windows",
    "machine": "device, processes, counting, timing",
    "recordings": "schema, writing, reading, shards",
    "controllers": "sites, families, routing",
    "architectures": "one torch file per model trained here",
    "models": "kinds, checkpoints, imports",
    "frozen": "capture, playback, layer maps",
    "stages": "one plain function per rule",
    "results": "an analysis' artifacts as tables",
    "figures": "one function per figure",
    "report": "claims, tables, the page",
    "planning": "config, declarations, keys, the plan",
    "forecast": "what an audit will take",
    "notebook": "what a person imports as fca.…",
    "cli": "the command line",
}
#: imported by everyone, importing nothing
FREE = ("errors", "progress")
ENTRANCES = ("__init__", "__main__")


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(path: Path) -> set[str]:
    """Full names of what a file imports, inside functions too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def arrows() -> dict[str, set[str]]:
    """Room -> the other rooms that it imports from."""
    found: dict[str, set[str]] = {room: set() for room in ROOMS}
    for path in modules():
        own = room_of(path)
        for name in imported(path):
            parts = name.split(".")
            if own in ROOMS and parts[0] == "fca" and len(parts) > 1 and parts[1] in ROOMS:
                found[own].add(parts[1])
    return {room: rooms - {room} for room, rooms in found.items()}


def reduced(graph: dict[str, set[str]]) -> dict[str, set[str]]:
    """Without the arrows that a longer way says too."""

    def reach(room: str) -> set[str]:
        return graph[room].union(*(reach(below) for below in graph[room]), set())

    return {
        room: {b for b in below if not any(b in reach(other) for other in below if other != b)}
        for room, below in graph.items()
    }


def levels(graph: dict[str, set[str]]) -> list[list[str]]:
    """Rooms by the length of the longest way down, the lowest last."""
    depth: dict[str, int] = {}
    for room in ROOMS:  # a room comes after all that it imports
        depth[room] = 1 + max((depth[below] for below in graph[room]), default=-1)
    return [[r for r in ROOMS if depth[r] == d] for d in range(max(depth.values()), -1, -1)]


def lines_of(room: str) -> tuple[int, int]:
    """Files, and lines of code, of a room."""
    own = [path for path in modules() if room_of(path) == room]
    return len(own), sum(len(path.read_text().splitlines()) for path in own)


WIDTH, HEIGHT, GAP_X, GAP_Y, MARGIN = 232, 58, 22, 40, 24


def draw() -> str:
    """The picture as SVG."""
    graph = arrows()
    rows = levels(graph)
    page = max(len(row) for row in rows) * (WIDTH + GAP_X) - GAP_X + 2 * MARGIN
    place = {}
    for y, row in enumerate(rows):
        left = (page - len(row) * (WIDTH + GAP_X) + GAP_X) / 2
        for x, room in enumerate(row):
            place[room] = (left + x * (WIDTH + GAP_X), MARGIN + y * (HEIGHT + GAP_Y))
    lines, boxes = [], []
    for room, below in reduced(graph).items():
        for other in sorted(below):
            (x1, y1), (x2, y2) = place[room], place[other]
            start, end = (x1 + WIDTH / 2, y1 + HEIGHT), (x2 + WIDTH / 2, y2 - 4)
            bend = (end[1] - start[1]) / 2
            lines.append(
                f'<path d="M{start[0]:.0f},{start[1]:.0f} C{start[0]:.0f},{start[1] + bend:.0f} '
                f'{end[0]:.0f},{end[1] - bend:.0f} {end[0]:.0f},{end[1]:.0f}" class="arrow"/>'
            )
    for room, (x, y) in place.items():
        files, _ = lines_of(room)
        size = f"{files} file{'s' * (files > 1)}"
        boxes.append(
            f'<rect x="{x:.0f}" y="{y:.0f}" width="{WIDTH}" height="{HEIGHT}" rx="6"/>'
            f'<text x="{x + 10:.0f}" y="{y + 23:.0f}" class="name">{room}</text>'
            f'<text x="{x + WIDTH - 10:.0f}" y="{y + 23:.0f}" class="size">{size}</text>'
            f'<text x="{x + 10:.0f}" y="{y + 44:.0f}" class="holds">{escape(ROOMS[room])}</text>'
        )
    height = 2 * MARGIN + len(rows) * (HEIGHT + GAP_Y) - GAP_Y
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {page} {height}" width="{page}" '
        'font-family="Helvetica, Arial, sans-serif">\n'
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="#7b8794"/></marker></defs>\n'
        "<style>.arrow{fill:none;stroke:#7b8794;stroke-width:1.3;marker-end:url(#head)}"
        "rect{fill:#f5f7fa;stroke:#52606d}.name{font-size:15px;font-weight:bold;fill:#1f2933}"
        ".size{font-size:11px;fill:#52606d;text-anchor:end}.holds{font-size:11.5px;fill:#323f4b}</style>\n"
        f'<rect width="{page}" height="{height}" style="fill:white;stroke:none"/>\n'
        + "\n".join([*lines, *boxes])
        + "\n</svg>\n"
    )


if __name__ == "__main__":
    PICTURE.write_text(draw())
    print(PICTURE.relative_to(ROOT))
