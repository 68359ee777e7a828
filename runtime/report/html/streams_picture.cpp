#include "runtime/report/html/streams_picture.h"

#include "runtime/report/command_text.h"
#include "runtime/report/html/markup.h"

namespace gpuc::html {
namespace {

/// By what a command is coloured.
const char* kindOf(const fb::Command& command) {
  if (const fb::Copy* copy = command.work_as_Copy()) {
    constexpr const char* kKinds[] = {"upload", "download", "copy"};
    return kKinds[static_cast<size_t>(copy->kind())];
  }
  if (command.work_as_Fill()) return "fill";
  if (command.recomputed()) return "recomputed";
  return command.backward() ? "backward" : "forward";
}

std::string key() {
  constexpr std::pair<const char*, const char*> kKinds[] = {
      {"upload", "upload"},     {"forward", "forward, update"}, {"recomputed", "recomputed"},
      {"backward", "backward"}, {"download", "download"},       {"copy", "copy, fill"}};
  std::string text = "<p class=\"key\">";
  for (const auto& [kind, name] : kKinds)
    text += std::string("<span class=\"") + kind + "\">" + name + "</span>";
  return text + "a line ends in a dot where a stream waits; dashed: for an earlier run</p>\n";
}

/// "reads 1.5 KiB (1536 bytes), writes 64 bytes", of one execution.
std::string trafficOf(const fb::Command& command) {
  uint64_t read = 0, written = 0;
  for (const auto& [operand, use] : operandsOf(command)) {
    if (!operand) continue;
    if (isRead(use.role)) read += operand->size();
    if (isWritten(use.role)) written += operand->size();
  }
  return "reads " + bytesText(read) + ", writes " + bytesText(written);
}

class Drawing {
 public:
  Drawing(const fb::Plan& plan, const fb::Program& program, const Timeline& timeline, const TextSink& sink)
      : plan_(plan), program_(program), timeline_(timeline), sink_(sink) {}

  void draw() {
    const double end = std::max(1u, timeline_.length());
    sink_("<h3>Streams</h3>" + key() + "<figure class=\"streams picture zoomable\">\n" + lanes() +
          "<div class=\"field\" tabindex=\"0\" role=\"img\" aria-label=\"Commands on their streams\">\n"
          "<svg viewBox=\"0 0 " +
          number(end) + " " + number(countOf(program_.streams())) + "\" preserveAspectRatio=\"none\">\n");
    for (uint32_t i = 0; i < timeline_.length(); ++i) drawStep(i);
    drawWaits();
    sink_("</svg></div>\n<div class=\"x axis\">" + ticks("left", end) +
          "</div>\n<figcaption class=\"about\"></figcaption></figure>\n");
  }

 private:
  static double middleOf(uint32_t stream) { return stream + 0.5; }

  std::string nameOfStream(uint32_t stream) const {
    return escaped(textOf(program_.streams()->Get(stream)->name()));
  }

  std::string lanes() const {
    std::string text = "<div class=\"y axis\">";
    const uint32_t streams = countOf(program_.streams());
    for (uint32_t i = 0; i < streams; ++i)
      text +=
          "<span style=\"" + at("bottom", 1 - middleOf(i) / streams) + "\">" + nameOfStream(i) + "</span>";
    return text + "</div>\n";
  }

  void drawStep(uint32_t index) {
    const Timeline::Step& step = timeline_.steps()[index];
    std::string title = escaped(nameOf(plan_, program_, *step.command)) + "\n" + trafficOf(*step.command);
    if (const std::string_view layer = textOf(step.command->location()); !layer.empty())
      title += "\nlayer " + escaped(layer);
    title += "\ncommand " + std::to_string(index) + ", stream " + nameOfStream(step.stream);
    sink_(std::string("<rect class=\"") + kindOf(*step.command) + "\" x=\"" + std::to_string(index) +
          "\" y=\"" + number(step.stream + 0.15) + "\" width=\"1\" height=\"0.7\"><title>" + title +
          "</title></rect>\n");
  }

  void drawWaits() {
    std::vector<const Timeline::Signal*> records(countOf(program_.events()), nullptr);
    for (const Timeline::Signal& signal : timeline_.signals())
      if (const fb::Record* record = signal.command->work_as_Record()) records[record->event()] = &signal;
    for (const Timeline::Signal& signal : timeline_.signals())
      if (const fb::Wait* wait = signal.command->work_as_Wait(); wait && records[wait->event()])
        drawWait(*wait, signal, *records[wait->event()]);
  }

  /// What an earlier run recorded comes from the left edge.
  void drawWait(const fb::Wait& wait, const Timeline::Signal& here, const Timeline::Signal& record) {
    const bool is_earlier = wait.distance() > 0;
    const std::string from = number(is_earlier ? 0 : record.steps) + " " + number(middleOf(record.stream)),
                      to = number(here.steps) + " " + number(middleOf(here.stream));
    std::string title = "stream " + nameOfStream(here.stream) + " waits for " +
                        escaped(textOf(program_.events()->Get(wait.event()))) + " of stream " +
                        nameOfStream(record.stream);
    if (is_earlier) title += ", " + countText(wait.distance(), "execution") + " ago";
    sink_(std::string("<path class=\"wait") + (is_earlier ? " again" : "") + "\" d=\"M" + from + "L" + to +
          "\"><title>" + title + "</title></path><path class=\"wait end\" d=\"M" + to + "h0\"/>\n");
  }

  const fb::Plan& plan_;
  const fb::Program& program_;
  const Timeline& timeline_;
  const TextSink& sink_;
};

}  // namespace

void drawStreams(const fb::Plan& plan, const fb::Program& program, const Timeline& timeline,
                 const TextSink& sink) {
  Drawing(plan, program, timeline, sink).draw();
}

}  // namespace gpuc::html
