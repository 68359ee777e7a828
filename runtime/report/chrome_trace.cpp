#include "runtime/report/chrome_trace.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "runtime/plan/operands.h"
#include "runtime/report/command_text.h"

namespace gpuc {

std::string chromeTrace(const Plan& plan, const std::vector<ProfileEvent>& events) {
  using Json = nlohmann::ordered_json;
  int64_t start_ns = INT64_MAX;
  for (const ProfileEvent& event : events) start_ns = std::min(start_ns, event.begin_ns);
  auto micros = [](int64_t ns) { return static_cast<double>(ns) / 1000.0; };

  Json list = Json::array();
  std::set<uint32_t> named_streams;
  for (const ProfileEvent& event : events) {
    const fb::Program& program = *plan.root().programs()->Get(event.program);
    if (named_streams.insert(event.stream).second) {
      std::string stream(textOf(program.streams()->Get(event.stream)->name()));
      list.push_back({{"name", "thread_name"},
                      {"ph", "M"},
                      {"pid", 0},
                      {"tid", event.stream},
                      {"args", {{"name", stream}}}});
    }
    list.push_back({{"name", nameOf(plan.root(), program, *event.command)},
                    {"cat", kindOf(*event.command)},
                    {"ph", "X"},
                    {"ts", micros(event.begin_ns - start_ns)},
                    {"dur", micros(event.end_ns - event.begin_ns)},
                    {"pid", 0},
                    {"tid", event.stream},
                    {"args",
                     {{"entry", std::string(textOf(program.name()))},
                      {"location", std::string(textOf(event.command->location()))}}}});
  }
  Json trace = {{"traceEvents", std::move(list)}, {"displayTimeUnit", "ns"}};
  // Names come from a file: what is not UTF-8 in them is replaced.
  return trace.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace gpuc
