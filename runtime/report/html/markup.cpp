#include "runtime/report/html/markup.h"

#include <algorithm>
#include <cmath>

#include "runtime/base/quote.h"

namespace gpuc::html {
namespace {

/// At most so much of a name: of what many rectangles say of themselves.
constexpr size_t kMostTextBytes = 100;

constexpr double kMostTicks = 8;

}  // namespace

std::string escaped(std::string_view text) {
  constexpr std::pair<char, const char*> kEntities[] = {
      {'<', "&lt;"}, {'>', "&gt;"}, {'&', "&amp;"}, {'"', "&quot;"}, {'\'', "&#39;"}};
  const std::string_view shown = firstBytes(text, kMostTextBytes);
  std::string result;
  for (char c : shown) {
    auto entity =
        std::find_if(std::begin(kEntities), std::end(kEntities), [c](const auto& e) { return e.first == c; });
    if (entity == std::end(kEntities))
      result += c;
    else
      result += entity->second;
  }
  return shown.size() < text.size() ? result + "…" : result;
}

std::string bytesText(uint64_t bytes) {
  const std::string exact = std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes");
  if (bytes < 1024) return exact;
  const bool is_large = bytes >= 1 << 20;
  char text[64];
  std::snprintf(text, sizeof(text), is_large ? "%.2f MiB" : "%.1f KiB",
                static_cast<double>(bytes) / (is_large ? 1 << 20 : 1 << 10));
  return std::string(text) + " (" + exact + ")";
}

std::string countText(uint64_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

std::string number(double value) {
  char text[64];
  std::snprintf(text, sizeof(text), "%.6f", value);
  std::string result = text;
  result.erase(result.find_last_not_of('0') + 1);
  if (result.back() == '.') result.pop_back();
  return result;
}

std::string shortNumber(double value) {
  const char* suffix = "";
  for (const char* next : {"k", "M", "G", "T"}) {
    if (value < (*suffix ? 1e3 : 1e4)) break;
    value /= 1e3;
    suffix = next;
  }
  char text[64];
  std::snprintf(text, sizeof(text), "%.4g%s", value, suffix);
  return text;
}

double stepOf(double length) {
  const double least = length / kMostTicks, power = std::pow(10, std::floor(std::log10(least)));
  for (double factor : {1, 2, 5})
    if (factor * power >= least) return factor * power;
  return 10 * power;
}

std::string at(const char* side, double share) { return std::string(side) + ":" + number(100 * share) + "%"; }

std::string ticks(const char* side, double end) {
  std::string text;
  const double step = stepOf(end);
  for (int i = 0; i * step <= end; ++i)
    text += "<span style=\"" + at(side, i * step / end) + "\">" + number(i * step) + "</span>";
  return text;
}

}  // namespace gpuc::html
