#include "runtime/report/html/memory_picture.h"

#include "runtime/plan/describe.h"
#include "runtime/report/command_text.h"
#include "runtime/report/html/markup.h"

namespace gpuc::html {
namespace {

constexpr double kMebibyte = 1 << 20;

/// By what a rectangle is coloured: its category, and of an activation whether the backward pass finds it or
/// computes it again.
std::string kindOf(const fb::Buffer& buffer, Residual residual) {
  const bool is_residual = buffer.category() == fb::Category::activation && residual != Residual::none;
  return is_residual ? nameOf(residual) : fb::EnumNameCategory(buffer.category());
}

/// One program's buffers as rectangles, in units of commands and bytes.
class Drawing {
 public:
  Drawing(const fb::Plan& plan, const fb::Program& program, const Timeline& timeline,
          const std::vector<Residual>& residuals, const TextSink& sink)
      : plan_(plan), program_(program), timeline_(timeline), residuals_(residuals), sink_(sink) {}

  void draw() {
    const Peak peak = peakOf(plan_, timeline_);
    sink_("<figure class=\"memory picture zoomable\">\n" + peakLabel(peak) +
          axis("y", "bottom", bytes() / kMebibyte) +
          "<div class=\"field\" tabindex=\"0\" role=\"img\" aria-label=\"The arena over time\">\n"
          "<svg viewBox=\"0 0 " +
          std::to_string(commands()) + " " + number(length(bytes())) +
          "\" preserveAspectRatio=\"none\" data-unit=\"" + number(kMebibyte / unit_) + "\">\n");
    for (uint32_t i = 0; i < timeline_.spans().size(); ++i)
      if (const std::optional<Span>& span = timeline_.spans()[i]) drawBuffer(i, *span);
    sink_("<path class=\"peak\" d=\"M" + number(peak.step + 0.5) + " 0V" + number(length(bytes())) +
          "\"/>\n</svg>" + "</div>\n" + axis("x", "left", static_cast<double>(commands())) +
          "<figcaption class=\"about\">" + kHint + "</figcaption></figure>\n" + peakTable(peak));
  }

 private:
  static constexpr const char* kHint =
      "Point at a rectangle, or press an arrow key in the picture, to see what it is. Drag to look closer; "
      "double-click, or press Escape, to see all again.";

  // Something to divide by.
  uint64_t bytes() const { return std::max<uint64_t>(1, plan_.arena_bytes()); }
  uint64_t commands() const { return std::max(1u, timeline_.length()); }

  /// The least power of two of which the arena has at most a million.
  static double unitOf(uint64_t bytes) {
    double unit = 1;
    while (static_cast<double>(bytes) / unit > 1e6) unit *= 2;
    return unit;
  }

  static std::string axis(const char* name, const char* side, double end) {
    return std::string("<div class=\"") + name + " axis\">" + ticks(side, end) + "</div>\n";
  }

  /// Bytes as lengths in the drawing. Browsers draw nothing beyond some 30 million.
  double length(uint64_t bytes) const { return static_cast<double>(bytes) / unit_; }

  std::string commandAt(uint32_t step) const {
    if (step >= timeline_.length()) return "no command";
    return std::to_string(step) + ", " + escaped(nameOf(plan_, program_, *timeline_.steps()[step].command));
  }

  std::string peakLabel(const Peak& peak) const {
    const double share = (peak.step + 0.5) / static_cast<double>(commands());
    const bool is_left = share < 0.5;  // the larger side has the text
    const std::string text = "peak: " + bytesText(peak.bytes) + " at command " + commandAt(peak.step);
    return "<div class=\"peak\"><span style=\"" +
           at(is_left ? "left" : "right", is_left ? share : 1 - share) + ";" +
           at("max-width", is_left ? 1 - share : share) + "\" title=\"" + text + "\">" + text +
           "</span></div>\n";
  }

  /// The bytes at the peak by what they are for, and those that are left, together the arena.
  std::string peakTable(const Peak& peak) const {
    std::string text = "<table class=\"peak\"><caption>The arena at that instant</caption>\n";
    auto add = [&](const std::string& name, uint64_t bytes) {
      text += "<tr><th>" + name + "</th><td>" + bytesText(bytes) + "</td></tr>\n";
    };
    for (const auto& [category, bytes] : peak.by_category) add(fb::EnumNameCategory(category), bytes);
    add("nothing", plan_.arena_bytes() - peak.bytes);
    add("arena", plan_.arena_bytes());
    return text + "</table>\n";
  }

  /// A rectangle for each slot, or one over all of them if there are many.
  void drawBuffer(uint32_t index, Span span) {
    constexpr uint32_t kMostSlots = 4;
    const fb::Buffer& buffer = *plan_.buffers()->Get(index);
    const uint32_t slots = buffer.slot_stride() ? plan_.input_slots() : 1;
    const bool is_each_drawn = slots <= kMostSlots;
    const uint64_t size = is_each_drawn ? buffer.size() : extentOf(plan_, buffer);
    const std::string title = titleOf(index, span);
    for (uint32_t slot = 0; slot < (is_each_drawn ? slots : 1); ++slot) {
      const uint64_t end = buffer.offset() + slot * buffer.slot_stride() + size;
      sink_("<rect class=\"" + kindOf(buffer, residuals_[index]) + "\" x=\"" + std::to_string(span.first) +
            "\" y=\"" + number(length(bytes() - end)) + "\" width=\"" +
            std::to_string(span.last - span.first + 1) + "\" height=\"" + number(length(size)) +
            "\"><title>" + title + "</title></rect>\n");
    }
  }

  std::string titleOf(uint32_t index, Span span) const {
    const fb::Buffer& buffer = *plan_.buffers()->Get(index);
    std::string text = escaped(textOf(buffer.name())) + "\n" + describeTensor(buffer, "").str() + ", " +
                       bytesText(buffer.size()) + ", from byte " + std::to_string(buffer.offset()) + "\n" +
                       fb::EnumNameCategory(buffer.category());
    if (residuals_[index] == Residual::kept) text += ", kept for the backward pass";
    if (residuals_[index] == Residual::recomputed) text += ", recomputed for the backward pass";
    if (const std::string_view layer = textOf(buffer.location()); !layer.empty())
      text += "\nlayer " + escaped(layer);
    if (const std::string_view source = textOf(buffer.source()); !source.empty())
      text += "\n" + escaped(source);
    return text + "\n" + lifetimeOf(span);
  }

  std::string lifetimeOf(Span span) const {
    if (span.first == 0 && span.last + 1 >= timeline_.length()) return "from the first command to the last";
    return "from command " + commandAt(span.first) + "\nto command " + commandAt(span.last);
  }

  const fb::Plan& plan_;
  const fb::Program& program_;
  const Timeline& timeline_;
  const std::vector<Residual>& residuals_;
  const TextSink& sink_;
  const double unit_ = unitOf(bytes());
};

}  // namespace

std::string memoryKey() {
  std::string text = "<p class=\"key\">";
  auto add = [&](const std::string& kind, const std::string& name) {
    text += "<span class=\"" + kind + "\">" + name + "</span>";
  };
  for (fb::Category category : fb::EnumValuesCategory()) {
    add(fb::EnumNameCategory(category), fb::EnumNameCategory(category));
    if (category != fb::Category::activation) continue;
    add(nameOf(Residual::kept), "… kept for the backward pass");
    add(nameOf(Residual::recomputed), "… recomputed for it");
  }
  return text + "</p>\n";
}

void drawMemory(const fb::Plan& plan, const fb::Program& program, const Timeline& timeline,
                const std::vector<Residual>& residuals, const TextSink& sink) {
  Drawing(plan, program, timeline, residuals, sink).draw();
}

}  // namespace gpuc::html
