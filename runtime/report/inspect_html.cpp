// The arena as a drawing, one for each program: x is time in commands, y the offset in bytes. A rectangle is
// a buffer from the first command that touches it to the last; what lives across steps reaches from edge to
// edge.
#include <algorithm>
#include <vector>

#include "runtime/base/quote.h"
#include "runtime/plan/operands.h"
#include "runtime/report/command_text.h"
#include "runtime/report/inspect.h"

namespace gpuc {
namespace {

constexpr int kWidth = 1000, kHeight = 480;  // of a drawing, in pixels

constexpr const char* kHead = R"(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>gpuc plan</title><style>
body { font: 14px sans-serif; margin: 2em; max-width: 1040px }
svg { border: 1px solid #888; background: #fff; display: block }
rect { stroke: #fff; stroke-width: .5 } rect:hover { stroke: #000; stroke-width: 2 }
.parameter { --c: #4e79a7 } .gradient { --c: #f28e2b } .optimizer { --c: #b07aa1 } .activation { --c: #59a14f }
.workspace { --c: #9c755f } .input { --c: #76b7b2 } .constant { --c: #bab0ac }
rect { fill: var(--c) } .key span { background: var(--c); padding: 1px 8px; margin-right: 6px; color: #fff }
</style></head><body>
)";

/// At most so much of a name: of what many rectangles say of themselves.
constexpr size_t kMostTextBytes = 100;

std::string escaped(std::string_view text) {
  constexpr std::pair<char, const char*> kEntities[] = {
      {'<', "&lt;"}, {'>', "&gt;"}, {'&', "&amp;"}, {'"', "&quot;"}};
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

/// When a buffer is touched in a program, in commands since its start; both ends belong to it.
struct Span {
  int first;
  int last;
};

/// The commands of one program in an order that its events allow.
class Timeline {
 public:
  explicit Timeline(const fb::Program& program) : recorded_(countOf(program.events()), false) {
    std::vector<std::vector<const fb::Command*>> streams;
    streams.reserve(countOf(program.streams()));
    for (const fb::Stream* stream : each(program.streams()))
      flatten(stream->commands(), streams.emplace_back());
    merge(streams);
  }

  int length() const { return time_; }
  const std::map<uint32_t, Span>& spans() const { return spans_; }

 private:
  /// Each loop is drawn once.
  void flatten(const Commands* commands, std::vector<const fb::Command*>& list) {
    for (const fb::Command* command : each(commands))
      if (const std::optional<CommandLoop> loop = loopOf(*command))
        flatten(loop->commands, list);
      else
        list.push_back(command);
  }

  /// Every stream goes on until it waits for what is not yet recorded; the main one last, as it waits for
  /// most.
  void merge(const std::vector<std::vector<const fb::Command*>>& streams) {
    std::vector<size_t> at(streams.size(), 0);
    for (bool progress = true; progress;) {
      progress = false;
      for (size_t s = streams.size(); s-- > 0;)
        while (at[s] < streams[s].size() && ready(*streams[s][at[s]])) {
          execute(*streams[s][at[s]++]);
          progress = true;
        }
    }
  }

  bool ready(const fb::Command& command) const {
    const fb::Wait* wait = command.work_as_Wait();
    return !wait || wait->distance() > 0 || recorded_[wait->event()];
  }

  void execute(const fb::Command& command) {
    if (const fb::Record* record = command.work_as_Record()) recorded_[record->event()] = true;
    const std::vector<CommandOperand> operands = operandsOf(command);
    for (const auto& [operand, use] : operands)
      if (operand) touch(operand->buffer());
    if (!operands.empty()) ++time_;
  }

  void touch(uint32_t buffer) {
    auto [span, is_new] = spans_.try_emplace(buffer, Span{time_, time_});
    if (!is_new) span->second.last = time_;
  }

  std::vector<bool> recorded_;
  std::map<uint32_t, Span> spans_;
  int time_ = 0;
};

/// A rectangle for each slot, or one over all of them if there are many.
std::string rectangles(const fb::Plan& plan, const fb::Buffer& buffer, Span span, int length) {
  constexpr uint32_t kMostSlots = 4;
  const uint32_t slots = buffer.slot_stride() ? plan.input_slots() : 1;
  const uint32_t drawn = slots <= kMostSlots ? slots : 1;
  const uint64_t bytes = buffer.size() + (slots - drawn) * buffer.slot_stride();
  double per_command = static_cast<double>(kWidth) / std::max(1, length);
  double per_byte =
      static_cast<double>(kHeight) / static_cast<double>(std::max<uint64_t>(1, plan.arena_bytes()));
  std::string text;
  for (uint32_t slot = 0; slot < drawn; ++slot) {
    double height = static_cast<double>(bytes) * per_byte;
    double top =
        kHeight - static_cast<double>(buffer.offset() + slot * buffer.slot_stride()) * per_byte - height;
    char box[160];
    std::snprintf(box, sizeof(box),
                  "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" class=\"%s\">",
                  span.first * per_command, top, (span.last - span.first + 1) * per_command,
                  std::max(height, 0.5), fb::EnumNameCategory(buffer.category()));
    text += std::string(box) + "<title>" + escaped(textOf(buffer.name())) + ": " +
            std::to_string(buffer.size()) + " bytes at " + std::to_string(buffer.offset()) + " " +
            escaped(textOf(buffer.location())) + "</title></rect>\n";
  }
  return text;
}

void draw(const fb::Plan& plan, const fb::Program& program, const std::vector<bool>& persistent,
          const TextSink& sink) {
  Timeline timeline(program);
  std::string text = "<h2>" + escaped(textOf(program.name())) + "</h2><p>" +
                     std::to_string(timeline.length()) + " commands that touch memory, peak " +
                     std::to_string(program.peak_bytes()) + " bytes</p>\n";
  text += "<svg width=\"" + std::to_string(kWidth) + "\" height=\"" + std::to_string(kHeight) + "\">\n";
  sink(text);
  for (const auto& [index, span] : timeline.spans()) {
    const fb::Buffer& buffer = *plan.buffers()->Get(index);
    bool stays = persistent[index] || buffer.slot_stride() > 0;
    sink(rectangles(plan, buffer, stays ? Span{0, timeline.length() - 1} : span, timeline.length()));
  }
  sink("</svg>\n");
}

}  // namespace

void inspectHtml(const Plan& plan, const TextSink& sink) {
  const fb::Plan& root = plan.root();
  std::vector<bool> persistent(countOf(root.buffers()), false);
  for (const fb::Variable* variable : each(root.variables())) persistent[variable->buffer()] = true;
  for (const fb::Constant* constant : each(root.constants())) persistent[constant->buffer()] = true;

  std::string text = kHead;
  text += "<h1>" + escaped(plan.info().name) + "</h1><p>One arena of " + std::to_string(root.arena_bytes()) +
          " bytes. Left to right: the commands of a run. Bottom to top: bytes. Point at a buffer for its "
          "name.</p>"
          "<p class=\"key\">";
  for (fb::Category category : fb::EnumValuesCategory())
    text += std::string("<span class=\"") + fb::EnumNameCategory(category) + "\">" +
            fb::EnumNameCategory(category) + "</span>";
  sink(text + "</p>\n");
  for (const fb::Program* program : each(root.programs())) draw(root, *program, persistent, sink);
  sink("</body></html>\n");
}

std::string inspectHtml(const Plan& plan) {
  std::string text;
  inspectHtml(plan, [&](std::string_view piece) { text += piece; });
  return text;
}

}  // namespace gpuc
