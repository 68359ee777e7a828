#include "runtime/report/chrome_trace.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "runtime/plan/operands.h"
#include "runtime/report/command_text.h"

namespace gpuc {
namespace {

using Json = nlohmann::ordered_json;

/// What a process or a thread is called.
Json nameEvent(const char* what, const std::string& name, int64_t process, size_t thread) {
  return {{"name", what}, {"ph", "M"}, {"pid", process}, {"tid", thread}, {"args", {{"name", name}}}};
}

Json namesOf(const std::vector<TraceLine>& lines) {
  Json list = Json::array();
  std::set<int64_t> processes;
  for (size_t line = 0; line < lines.size(); ++line) {
    const TraceLine& entry = lines[line];
    if (!entry.process_name.empty() && processes.insert(entry.process).second)
      list.push_back(nameEvent("process_name", entry.process_name, entry.process, line));
    list.push_back(nameEvent("thread_name", entry.name, entry.process, line));
  }
  return list;
}

/// Of its operands in the arena; what is both read and written counts twice.
uint64_t bytesOf(const fb::Command& command) {
  uint64_t bytes = 0;
  for (const CommandOperand& each : operandsOf(command))
    if (each.operand) bytes += each.operand->size() * (isRead(each.use.role) + isWritten(each.use.role));
  return bytes;
}

}  // namespace

std::string chromeTrace(const std::vector<TraceLine>& lines, const std::vector<TraceEvent>& events) {
  double start_ns = events.empty() ? 0 : events.front().begin_ns;
  for (const TraceEvent& event : events) start_ns = std::min(start_ns, event.begin_ns);
  Json list = namesOf(lines);
  for (const TraceEvent& event : events) {
    Json arguments = {{"entry", event.entry}, {"location", event.location}};
    if (event.bytes) arguments["bytes"] = *event.bytes;
    list.push_back({{"name", event.name},
                    {"cat", event.kind},
                    {"ph", "X"},
                    {"ts", (event.begin_ns - start_ns) / 1000},
                    {"dur", (event.end_ns - event.begin_ns) / 1000},
                    {"pid", lines[event.line].process},
                    {"tid", event.line},
                    {"args", std::move(arguments)}});
  }
  Json trace = {{"traceEvents", std::move(list)}, {"displayTimeUnit", "ns"}};
  // Names come from a file: what is not UTF-8 in them is replaced.
  return trace.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string chromeTrace(const Plan& plan, const std::vector<ProfileEvent>& events) {
  std::vector<TraceLine> lines;
  std::map<uint32_t, size_t> line_of;
  std::vector<TraceEvent> list;
  const int64_t start_ns = events.empty() ? 0 : events.front().begin_ns;  // what is since then is exact
  for (const ProfileEvent& event : events) {
    const fb::Program& program = *plan.root().programs()->Get(event.program);
    auto [line, is_new] = line_of.try_emplace(event.stream, lines.size());
    if (is_new) lines.push_back({std::string(textOf(program.streams()->Get(event.stream)->name())), "", 0});
    list.push_back({.line = line->second,
                    .name = nameOf(plan.root(), program, *event.command),
                    .kind = kindOf(*event.command),
                    .entry = std::string(textOf(program.name())),
                    .location = std::string(textOf(event.command->location())),
                    .begin_ns = static_cast<double>(event.begin_ns - start_ns),
                    .end_ns = static_cast<double>(event.end_ns - start_ns),
                    .bytes = bytesOf(*event.command)});
  }
  return chromeTrace(lines, list);
}

}  // namespace gpuc
