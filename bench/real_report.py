"""What scripts/bench --real writes: report.py's table with the rate of products and everyone's memory."""

import report
from real_cases import PRODUCT, PRODUCT_FLOPS


def rates_of_products(candidates):
    """threads → GFLOP/s"""
    return {it["threads"]: PRODUCT_FLOPS / it["us"] / 1e3 for it in candidates if it["name"] == PRODUCT.name}


def cell(case, losses, candidates, flops, arena_bytes):
    """A cell's entry in results.json: report.cell's, and what it is measured by here."""
    rates = rates_of_products(candidates)
    result = report.cell(case, losses, [it for it in candidates if it["name"] != PRODUCT.name])
    gflops = flops / result["gpuc_us"] / 1e3
    share = gflops / max(rates.values())
    peaks = [it["peak_bytes"] for it in candidates if it.get("peak_bytes")]
    result.update(flops=flops, gflops_per_s=gflops, product_gflops_per_s=rates, share=share, target_share=case.share,
                  arena_bytes=arena_bytes, least_peer_peak_bytes=min(peaks, default=None))
    if result["ratio"] is not None:
        result["reached"] = reached(case, result["ratio"], share)
    return result


def reached(case, ratio, share):
    """Never slower than the best peer; and as many times as fast as it, or near the rate of products."""
    return ratio >= 1 and (ratio >= case.target or (case.share is not None and share >= case.share))


def megabytes(size):
    return "–" if size is None else f"{size / 1e6:,.0f}" if size >= 1e8 else f"{size / 1e6:.1f}"


class RealRun(report.Run):
    suffix = "-real"

    def heads(self):
        return ["one step of", *(f"{report.TITLES.get(name, name)}, ms" for name in self.names), "ratio to the best peer", "GFLOP/s",
                "of the rate of products", "reached", "arena, MB", "least peak of a peer, MB"]

    def row(self, result):
        def time_of(name):
            it = report.best(result["candidates"], name)
            return f"{it['us'] / 1e3:.{1 if it['us'] >= 1e4 else 2}f} ({it['threads']})" if it else "–"
        ratio, reached = "–", "–"
        if result["ratio"] is not None:
            ratio, reached = f"**{result['ratio']:.2f}**", "yes" if result["reached"] else "no"
        return " | ".join(["| " + result["title"], *map(time_of, self.names), ratio, f"{result['gflops_per_s']:.0f}",
                           f"{100 * result['share']:.0f}%", reached, megabytes(result["arena_bytes"]),
                           megabytes(result["least_peer_peak_bytes"])]) + " |"
