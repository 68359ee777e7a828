#include "runtime/report/html/tradeoff_picture.h"

#include <algorithm>

#include "runtime/report/html/markup.h"
#include "runtime/report/html/plot.h"

namespace gpuc::html {
namespace {

constexpr double kMebibyte = 1 << 20;

double mebibytesOf(const TradeoffPoint& point) { return static_cast<double>(point.peak_bytes) / kMebibyte; }
double millisecondsOf(const TradeoffPoint& point) { return point.predicted_step_us / 1000; }

Axis axisOf(const char* unit, double value) { return {unit, value, value > 0 ? value : 1}; }

std::string titleOf(const TradeoffPoint& point, double fastest_us) {
  std::string text = escaped(point.kept) + (point.chosen ? ", this plan" : "") + "\narena " +
                     bytesText(point.peak_bytes) + "\npredicted step " +
                     shortNumber(point.predicted_step_us) + " µs";
  if (fastest_us > 0)
    text += ", " + shortNumber(100 * (point.predicted_step_us / fastest_us - 1)) + "% more than the fastest";
  return text;
}

}  // namespace

void drawTradeoff(const std::vector<TradeoffPoint>& points, const TextSink& sink) {
  Plot plot{.name = "tradeoff",
            .about = "Each dot is a plan that this one could have been; the large one is this plan.",
            .x = axisOf("MiB of the arena", mebibytesOf(points.front())),
            .y = axisOf("ms a step, as predicted", millisecondsOf(points.front())),
            .points = {},
            .lines = {}};
  double fastest_us = points.front().predicted_step_us;
  for (const TradeoffPoint& point : points) fastest_us = std::min(fastest_us, point.predicted_step_us);
  for (const TradeoffPoint& point : points) {
    const double x = mebibytesOf(point), y = millisecondsOf(point);
    plot.points.push_back(
        {x, y, point.chosen ? "large chosen" : "middle forward", titleOf(point, fastest_us)});
    for (double margin : {0.98, 1.02}) {
      plot.x.stretchTo(margin * x);
      plot.y.stretchTo(margin * y);
    }
  }
  sink("<h3>What memory could be traded for</h3>\n");
  draw(plot, sink);
}

}  // namespace gpuc::html
