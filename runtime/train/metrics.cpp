#include "runtime/train/metrics.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <type_traits>

namespace gpuc {

MetricsLine::MetricsLine(const StepEvent& event) {
  begin("step", event.step, event.epoch);
  field("loss", event.loss);
  field("lr", event.lr);
  field("grad_norm", event.grad_norm);
  field("loss_scale", event.loss_scale);
  field("skipped", event.skipped);
  field("samples_per_s", event.samples_per_s);
  field("data_us", event.data_us);
  field("compute_us", event.compute_us);
  end();
}

MetricsLine::MetricsLine(const EvalEvent& event) {
  begin("eval", event.step, event.epoch);
  field("loss", event.loss);
  field("accuracy", event.accuracy);
  end();
}

MetricsLine::MetricsLine(const EndEvent& event) {
  begin("end", event.step, event.epoch);
  field("steps", event.steps);
  field("epochs", event.epochs);
  field("wall_s", event.wall_s);
  field("samples_per_s", event.samples_per_s);
  field("loss", event.loss);
  field("accuracy", event.accuracy);
  end();
}

void MetricsLine::begin(std::string_view event, int64_t step, int64_t epoch) {
  add("{\"event\":\"");
  add(event);
  add("\"");
  field("step", step);
  field("epoch", epoch);
}

void MetricsLine::end() { add("}\n"); }

void MetricsLine::add(std::string_view text) {
  // 12 fields at most of a name and 24 digits: there is always room.
  size_t bytes = std::min(text.size(), text_.size() - length_);
  std::memcpy(text_.data() + length_, text.data(), bytes);
  length_ += bytes;
}

void MetricsLine::key(std::string_view name) {
  add(",\"");
  add(name);
  add("\":");
}

void MetricsLine::field(std::string_view name, int64_t value) {
  key(name);
  number(value);
}

void MetricsLine::field(std::string_view name, double value) { field(name, Number{value, false}); }

void MetricsLine::field(std::string_view name, Number value) {
  key(name);
  if (!std::isfinite(value.value))
    add("null");
  else if (value.is_single)
    number(static_cast<float>(value.value));
  else
    number(value.value);
}

void MetricsLine::field(std::string_view name, bool value) {
  key(name);
  add(value ? "true" : "false");
}

template <typename T>
void MetricsLine::field(std::string_view name, const std::optional<T>& value) {
  if (value) field(name, *value);
}

template <typename T>
void MetricsLine::number(T value) {
  char* begin = text_.data() + length_;
  char* end = std::to_chars(begin, text_.data() + text_.size(), value).ptr;
  length_ = static_cast<size_t>(end - text_.data());
  // 1 becomes 1.0: readers take what looks like an integer for one, and -0 then loses its sign.
  bool is_whole = std::find_if(begin, end, [](char c) { return c == '.' || c == 'e'; }) == end;
  if (std::is_floating_point_v<T> && is_whole) add(".0");
}

}  // namespace gpuc
