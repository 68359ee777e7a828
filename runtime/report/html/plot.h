// Points and lines on two axes that are numbers.
#pragma once

#include <string>
#include <vector>

#include "runtime/report/inspect.h"

namespace gpuc::html {

/// From `low` to `high`, in the axis' unit, or, if it `is_logarithmic`, in powers of ten of it.
struct Axis {
  std::string unit;
  double low, high;
  bool is_logarithmic = false;

  /// The share of the axis below a value, in its unit.
  double shareOf(double value) const;
  /// Makes room for a value.
  void stretchTo(double value);
};

struct Point {
  double x, y;
  std::string kind;   // its class
  std::string title;  // HTML
};

struct Line {
  std::vector<std::pair<double, double>> points;
  std::string title;  // HTML
};

struct Plot {
  std::string name;   // the figure's class
  std::string about;  // HTML: what it shows
  Axis x, y;
  std::vector<Point> points;
  std::vector<Line> lines;
};

void draw(const Plot& plot, const TextSink& sink);

}  // namespace gpuc::html
