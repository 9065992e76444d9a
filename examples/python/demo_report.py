"""The demo's report: one HTML file with its pictures inside, readable without a network."""

from __future__ import annotations

import html
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

Curve = list[tuple[int, int]]  # operators since the step began, resident bytes

MIB = 2**20
WIDTH, HEIGHT = 640, 220
BLUE, GREY, AMBER = "#2563eb", "#94a3b8", "#d97706"

STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #0f172a; background: #f8fafc; margin: 0; }
main { max-width: 1080px; margin: 0 auto; padding: 40px 24px 64px; }
h1 { font-size: 34px; margin: 0; letter-spacing: -0.02em; }
h2 { font-size: 21px; margin: 44px 0 12px; }
.lead { color: #475569; margin: 6px 0 26px; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(220px, 1fr)); gap: 16px; }
.tile, .card { background: #fff; border: 1px solid #e2e8f0; border-radius: 14px; }
.tile, .card { padding: 18px 20px; }
.tile b { display: block; font-size: 30px; letter-spacing: -0.02em; }
.tile span { color: #64748b; font-size: 14px; }
.grid { display: grid; grid-template-columns: repeat(auto-fit, minmax(440px, 1fr)); gap: 16px; }
.card h3 { margin: 0 0 4px; font-size: 16px; }
.card p { margin: 0 0 10px; color: #64748b; font-size: 14px; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: 9px 12px; text-align: right; border-bottom: 1px solid #e2e8f0; font-size: 15px; }
th { color: #64748b; font-weight: 600; font-size: 13px; }
th:first-child, td:first-child { text-align: left; }
.yes { color: #15803d; font-weight: 600; } .no { color: #b91c1c; font-weight: 700; }
.note { color: #92400e; font-size: 14px; margin: 8px 0 0; }
svg { width: 100%; height: auto; display: block; } svg text { font: 12px system-ui, sans-serif; }
"""


@dataclass(frozen=True)
class Row:
    """One network at one budget."""

    model: str
    share: float
    budget_bytes: int
    peak_bytes: int
    plain_peak_bytes: int
    step_seconds: float
    plain_step_seconds: float
    moved_bytes: int
    same_bits: bool
    note: str
    curve: Curve
    plain_curve: Curve

    @property
    def slowdown(self) -> float:
        return self.step_seconds / self.plain_step_seconds

    @property
    def label(self) -> str:
        return "smallest" if self.note else f"{self.share:.0%}"


def as_mib(count: int) -> str:
    return f"{count / MIB:.1f} MiB"


def write_report(path: Path, rows: list[Row], machine: str) -> None:
    path.write_text(page(rows, machine), encoding="utf-8")


def page(rows: list[Row], machine: str) -> str:
    models = list(dict.fromkeys(row.model for row in rows))
    groups = {model: [row for row in rows if row.model == model] for model in models}
    notes = "".join(
        f'<p class="note">{html.escape(f"{r.model}: {r.note}")}</p>' for r in rows if r.note
    )
    sections = [
        ("Every run", f'<div class="card">{table(rows)}{notes}</div>'),
        ("Peak against budget", grid(groups, peak_chart, "Dashed: the plain peak")),
        ("Memory during one step", grid(groups, curve_chart, "Grey: ample budget; blue: tightest")),
        ("Time of a step", grid(groups, time_chart, "Dashed: plain PyTorch")),
        ("Bytes moved in a step", grid(groups, moved_chart, "Down to the host and back up")),
    ]
    body = "".join(f"<h2>{title}</h2>{content}" for title, content in sections if content)
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Headwater demo</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{STYLE}</style><main><h1>Headwater demo</h1>"
        f'<p class="lead">Unchanged PyTorch under a byte budget. {html.escape(machine)}.</p>'
        f"{tiles(rows)}{body}</main></html>"
    )


def tiles(rows: list[Row]) -> str:
    tightest = min(rows, key=lambda row: row.budget_bytes / row.plain_peak_bytes)
    inside = sum(row.peak_bytes <= row.budget_bytes for row in rows)
    facts = [
        (
            f"{sum(row.same_bits for row in rows)} of {len(rows)}",
            "runs with the same bits as plain",
        ),
        (f"{inside} of {len(rows)}", "runs whose peak stayed inside the budget"),
        (
            f"{tightest.budget_bytes / tightest.plain_peak_bytes:.0%}",
            f"of the plain peak was enough for the {tightest.model}",
        ),
    ]
    cells = "".join(
        f'<div class="tile"><b>{b}</b><span>{html.escape(s)}</span></div>' for b, s in facts
    )
    return f'<div class="tiles">{cells}</div>'


def table(rows: list[Row]) -> str:
    names = ("model", "budget", "", "peak", "step", "vs plain", "moved / step", "same bits")
    head = "".join(f"<th>{name}</th>" for name in names)
    return f"<table><tr>{head}</tr>{''.join(table_row(row) for row in rows)}</table>"


def table_row(row: Row) -> str:
    cells = [
        html.escape(row.model),
        row.label,
        as_mib(row.budget_bytes),
        as_mib(row.peak_bytes),
        f"{row.step_seconds * 1e3:.1f} ms",
        f"{row.slowdown:.2f} x",
        as_mib(row.moved_bytes),
        '<span class="yes">yes</span>' if row.same_bits else '<span class="no">no</span>',
    ]
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def grid(groups: dict[str, list[Row]], draw: Callable[[list[Row]], str], hint: str) -> str:
    pictures = {model: draw(rows) for model, rows in groups.items()}
    cards = [
        f'<div class="card"><h3>{html.escape(model)}</h3><p>{hint}</p>{picture}</div>'
        for model, picture in pictures.items()
        if picture
    ]
    return f'<div class="grid">{"".join(cards)}</div>' if cards else ""


@dataclass(frozen=True)
class Bar:
    """A bar, and behind it the paler limit it should stay inside (zero: none)."""

    label: str
    value: float
    limit: float
    text: str


def peak_chart(rows: list[Row]) -> str:
    bars = [
        Bar(
            row.label,
            row.peak_bytes,
            row.budget_bytes,
            f"{as_mib(row.peak_bytes)} of {as_mib(row.budget_bytes)}",
        )
        for row in rows
    ]
    return bar_chart(bars, rows[0].plain_peak_bytes, f"plain {as_mib(rows[0].plain_peak_bytes)}")


def time_chart(rows: list[Row]) -> str:
    bars = [Bar(r.label, r.step_seconds, 0, f"{r.step_seconds * 1e3:.1f} ms") for r in rows]
    plain = rows[0].plain_step_seconds
    return bar_chart(bars, plain, f"plain {plain * 1e3:.1f} ms")


def moved_chart(rows: list[Row]) -> str:
    return bar_chart([Bar(r.label, r.moved_bytes, 0, as_mib(r.moved_bytes)) for r in rows], 0, "")


def bar_chart(bars: list[Bar], reference: float, reference_text: str) -> str:
    """Horizontal bars on one scale, with a dashed line at the reference (zero: none)."""
    left, right, pitch, top = 76, 150, 46, 26
    scale = (WIDTH - left - right) / (max([reference, *(max(b.value, b.limit) for b in bars)]) or 1)
    height = top + pitch * len(bars)
    parts = []
    for index, bar in enumerate(bars):
        y = top + pitch * index
        end = left + max(bar.value, bar.limit) * scale
        over = bar.limit and bar.value > bar.limit
        parts += [
            text(left - 10, y + 20, bar.label, "end"),
            rectangle(left, y + 2, bar.limit * scale, 28, "#dbeafe"),
            rectangle(left, y + 7, bar.value * scale, 18, AMBER if over else BLUE),
            text(end + 8, y + 20, bar.text),
        ]
    if reference:
        x = left + reference * scale
        parts += [
            dashes(x, top - 4, x, height - 6),
            text(x, 14, reference_text, "middle", "#64748b"),
        ]
    return svg(height, parts)


def curve_chart(rows: list[Row]) -> str:
    """Resident bytes over the operators of one step; nothing if too few samples came."""
    tightest = min(rows, key=lambda row: row.budget_bytes)
    curves = [(tightest.plain_curve, GREY), (tightest.curve, BLUE)]
    if any(len(curve) < 5 for curve, _ in curves):
        return ""
    left, bottom, top = 76, HEIGHT - 28, 14
    highest = max(tightest.plain_peak_bytes, *(size for curve, _ in curves for _, size in curve))
    last = max(max(op for curve, _ in curves for op, _ in curve), 1)

    def place(op: int, size: float) -> tuple[float, float]:
        across = left + (WIDTH - left - 20) * op / last
        return across, bottom - (bottom - top) * size / highest

    parts = [text(left - 10, bottom, "0", "end"), text(left - 10, top + 8, as_mib(highest), "end")]
    parts += [dashes(*place(0, tightest.budget_bytes), *place(last, tightest.budget_bytes))]
    parts += [text(left + 4, place(0, tightest.budget_bytes)[1] - 5, "budget", color="#64748b")]
    for curve, color in curves:
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(*sample) for sample in curve))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="2"/>')
    parts.append(text(WIDTH - 20, HEIGHT - 8, f"{last} operators", "end", "#64748b"))
    return svg(HEIGHT, parts)


def svg(height: int, parts: list[str]) -> str:
    body = "".join(parts)
    return f'<svg viewBox="0 0 {WIDTH} {height}" role="img" xmlns="http://www.w3.org/2000/svg">{body}</svg>'


def rectangle(x: float, y: float, width: float, height: float, color: str) -> str:
    size = f'width="{width:.1f}" height="{height}"'
    return f'<rect x="{x:.1f}" y="{y:.1f}" {size} rx="4" fill="{color}"/>'


def dashes(x1: float, y1: float, x2: float, y2: float) -> str:
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {ends} stroke="#64748b" stroke-dasharray="4 4"/>'


def text(x: float, y: float, words: str, anchor: str = "start", color: str = "#0f172a") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{color}"'
    return f"<text {place}>{html.escape(words)}</text>"
