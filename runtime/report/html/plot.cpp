#include "runtime/report/html/plot.h"

#include <algorithm>
#include <cmath>

#include "runtime/report/html/markup.h"

namespace gpuc::html {
namespace {

constexpr double kUnits = 1000;  // of a drawing, on both axes

double placeOf(const Axis& axis, double value) { return axis.is_logarithmic ? std::log10(value) : value; }

std::string marksOf(const Axis& axis, const char* name, const char* side) {
  std::string text = std::string("<div class=\"") + name + " axis\">";
  const double length = axis.high - axis.low;
  const double step = axis.is_logarithmic ? std::ceil(length / 10) : stepOf(length);
  for (double i = std::ceil(axis.low / step); i * step <= axis.high; ++i)
    text += "<span style=\"" + at(side, (i * step - axis.low) / length) + "\">" +
            shortNumber(axis.is_logarithmic ? std::pow(10, i * step) : i * step) + "</span>";
  return text + "<b>" + axis.unit + "</b></div>\n";
}

std::string pathOf(const Plot& plot, const Line& line) {
  std::string path;
  for (const auto& [x, y] : line.points)
    path += (path.empty() ? "M" : "L") + number(kUnits * plot.x.shareOf(x)) + " " +
            number(kUnits * (1 - plot.y.shareOf(y)));
  return "<path class=\"line\" d=\"" + path + "\"><title>" + line.title + "</title></path>\n";
}

}  // namespace

double Axis::shareOf(double value) const { return (placeOf(*this, value) - low) / (high - low); }

void Axis::stretchTo(double value) {
  const double place = placeOf(*this, value);
  low = std::min(low, is_logarithmic ? std::floor(place) : place);
  high = std::max(high, is_logarithmic ? std::floor(place) + 1 : place);
}

/// Points are drawn as the smallest of rectangles, so that whoever asks for what is under the pointer finds
/// them.
void draw(const Plot& plot, const TextSink& sink) {
  sink("<figure class=\"" + plot.name + " picture\">\n" + marksOf(plot.y, "y", "bottom") +
       "<div class=\"field\" tabindex=\"0\" role=\"img\" aria-label=\"" + plot.name +
       "\">\n<svg viewBox=\"0 0 " + number(kUnits) + " " + number(kUnits) +
       "\" preserveAspectRatio=\"none\">\n");
  for (const Line& line : plot.lines) sink(pathOf(plot, line));
  for (const Point& point : plot.points)
    sink("<rect class=\"dot " + point.kind + "\" x=\"" + number(kUnits * plot.x.shareOf(point.x)) +
         "\" y=\"" + number(kUnits * (1 - plot.y.shareOf(point.y))) +
         "\" width=\".01\" height=\".01\"><title>" + point.title + "</title></rect>\n");
  sink("</svg></div>\n" + marksOf(plot.x, "x", "left") + "<figcaption class=\"about\">" + plot.about +
       "</figcaption></figure>\n");
}

}  // namespace gpuc::html
