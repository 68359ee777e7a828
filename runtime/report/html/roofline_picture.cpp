#include "runtime/report/html/roofline_picture.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "runtime/report/html/markup.h"
#include "runtime/report/html/plot.h"

namespace gpuc::html {
namespace {

/// Commands that do the same stand in one place.
struct Place {
  const WorkItem* first;
  uint64_t commands = 0;
  double executions = 0;
  double us = 0;
};
using Places = std::map<std::pair<double, double>, Place>;  // by flops and bytes

bool computes(const WorkItem& item) { return item.flops > 0 && item.bytes > 0 && item.predicted_us > 0; }

Places placesOf(const CompilerReport& report, std::string_view entry) {
  Places places;
  for (const WorkItem& item : report.work) {
    if (item.entry != entry || !computes(item)) continue;
    Place& place = places.try_emplace({item.flops, item.bytes}, Place{&item}).first->second;
    ++place.commands;
    place.executions += item.executions;
    place.us += item.executions * item.predicted_us;
  }
  return places;
}

std::string sizeOf(double share) { return share > 0.05 ? "large" : share > 0.005 ? "middle" : "small"; }

std::string titleOf(const Place& place, double share, double knee) {
  const WorkItem& item = *place.first;
  std::string text = escaped(item.name);
  if (place.commands > 1) text += " and " + countText(place.commands - 1, "command") + " like it";
  text += "\n" + escaped(item.kind) + (item.backward ? ", backward" : "");
  if (!item.layer.empty()) text += ", layer " + escaped(item.layer);
  const double intensity = item.flops / item.bytes;
  text += "\n" + shortNumber(item.flops) + " operations, " + shortNumber(item.bytes) +
          " bytes: " + shortNumber(intensity) + " for each byte, so bound by " +
          (intensity < knee ? "memory" : "computing");
  return text + "\npredicted " + shortNumber(item.predicted_us) + " µs each, " +
         shortNumber(place.executions) + " times: " + shortNumber(100 * share) + "% of these commands";
}

Line roofOf(const PredictedRates& rates, const Axis& x) {
  const double knee = rates.flops_per_us / rates.bytes_per_us;
  const double low = std::pow(10, x.low), high = std::pow(10, x.high), most = rates.flops_per_us / 1000;
  Line roof;
  roof.title =
      "at most " + shortNumber(rates.bytes_per_us / 1000) + " GB/s and " + shortNumber(most) + " GFLOP/s";
  if (low < knee) roof.points.emplace_back(low, low * rates.bytes_per_us / 1000);
  if (low < knee && knee < high) roof.points.emplace_back(knee, most);
  roof.points.emplace_back(high, std::min(most, high * rates.bytes_per_us / 1000));
  if (low >= knee) roof.points.emplace(roof.points.begin(), low, most);
  return roof;
}

}  // namespace

void drawRoofline(const CompilerReport& report, std::string_view entry, const TextSink& sink) {
  const Places places = placesOf(report, entry);
  if (places.empty()) return;
  double us = 0;
  for (const auto& [work, place] : places) us += place.us;
  const double knee = report.rates.flops_per_us / report.rates.bytes_per_us;
  Plot plot{.name = "roofline",
            .about = "",
            .x = {"operations for each byte", 0, 1, true},
            .y = {"GFLOP/s", 0, 1, true},
            .points = {},
            .lines = {}};
  plot.x.stretchTo(knee);
  for (const auto& [work, place] : places) {
    const WorkItem& item = *place.first;
    const double share = us > 0 ? place.us / us : 0;
    plot.points.push_back({item.flops / item.bytes, item.flops / item.predicted_us / 1000,
                           sizeOf(share) + (item.backward ? " backward" : " forward"),
                           titleOf(place, share, knee)});
    plot.x.stretchTo(plot.points.back().x);
    plot.y.stretchTo(plot.points.back().y);
  }
  plot.lines.push_back(roofOf(report.rates, plot.x));
  for (const auto& [x, y] : plot.lines[0].points) plot.y.stretchTo(y);
  plot.about =
      "Larger dots take more of the time. Left of the roof's knee memory is the bound, right of it "
      "computing; "
      "what is far below waits for the fixed cost of a command.";
  sink("<h3>Roofline, as predicted</h3>\n");
  draw(plot, sink);
}

}  // namespace gpuc::html
