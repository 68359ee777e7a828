#include "runtime/report/compiler_files.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "runtime/base/file.h"
#include "runtime/base/quote.h"

namespace gpuc {
namespace {

using Json = nlohmann::json;

/// A member of an object, or null; nothing but an object has one.
const Json& memberOf(const Json& json, const char* key) {
  static const Json kNull;
  if (!json.is_object()) return kNull;
  const auto found = json.find(key);
  return found == json.end() ? kNull : *found;
}

/// Reads members, and remembers whether each was there and what it should be.
class Members {
 public:
  explicit Members(const Json& json) : json_(json) {}

  std::string text(const char* key) {
    const Json& value = check(key, memberOf(json_, key).is_string());
    return value.is_string() ? printable(value.get_ref<const std::string&>()) : "";
  }
  bool flag(const char* key) {
    const Json& value = check(key, memberOf(json_, key).is_boolean());
    return value.is_boolean() && value.get<bool>();
  }
  /// 0, or what a picture can show.
  double number(const char* key) {
    constexpr double kLeast = 1e-12, kMost = 1e24;
    const Json& value = memberOf(json_, key);
    const double number = value.is_number() ? value.get<double>() : -1;
    check(key, number == 0 || (number >= kLeast && number <= kMost));
    return number;
  }
  /// What is missing or not as it should be; empty if all is there.
  const std::string& wrong() const { return wrong_; }

 private:
  const Json& check(const char* key, bool is_right) {
    if (!is_right && wrong_.empty()) wrong_ = key;
    return memberOf(json_, key);
  }

  const Json& json_;
  std::string wrong_;
};

Status notOf(const std::string& path, const std::string& flag, const std::string& what) {
  return Status::error(path + ": " + what + ": give the file that gpuc-compile " + flag +
                       " wrote with the plan");
}

Result<Json> parse(const std::string& path) {
  GPUC_ASSIGN_OR_RETURN(const std::string text, readFile(path));
  return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

WorkItem workOf(Members& members) {
  return {.entry = members.text("entry"),
          .kind = members.text("kind"),
          .name = members.text("name"),
          .layer = members.text("layer"),
          .backward = members.flag("backward"),
          .flops = members.number("flops"),
          .bytes = members.number("bytes_read") + members.number("bytes_written"),
          .executions = members.number("executions"),
          .predicted_us = members.number("predicted_us")};
}

std::string otherArena(double bytes, const PlanInfo& plan) {
  return "of another plan, whose arena is " + std::to_string(static_cast<uint64_t>(bytes)) +
         " bytes and not " + std::to_string(plan.arena_bytes);
}

}  // namespace

Result<CompilerReport> readReport(const std::string& path, const PlanInfo& plan) {
  const std::string flag = "--report";
  GPUC_ASSIGN_OR_RETURN(const Json json, parse(path));
  if (!json.is_object() || !memberOf(json, "work").is_array()) return notOf(path, flag, "not a report");
  Members facts(json), rates(memberOf(json, "rates"));
  const double arena = facts.number("peak_bytes");
  CompilerReport report;
  report.rates = {rates.number("flops_per_us"), rates.number("bytes_per_us")};
  for (const Members* members : {&facts, &rates})
    if (!members->wrong().empty()) return notOf(path, flag, "not a report, which has " + members->wrong());
  if (report.rates.flops_per_us == 0 || report.rates.bytes_per_us == 0)
    return notOf(path, flag, "a rate is 0");
  if (arena != static_cast<double>(plan.arena_bytes)) return notOf(path, flag, otherArena(arena, plan));
  for (const Json& entry : json["work"]) {
    Members members(entry);
    report.work.push_back(workOf(members));
    if (!members.wrong().empty()) return notOf(path, flag, "a command of `work` without " + members.wrong());
  }
  // Only where something is computed by tensor cores is their rate the roof.
  const Json& tensor = memberOf(memberOf(json, "rates"), "tensor_flops_per_us");
  const bool is_above = std::any_of(report.work.begin(), report.work.end(), [&](const WorkItem& item) {
    return item.flops > item.predicted_us * report.rates.flops_per_us;
  });
  if (tensor.is_number() && is_above)
    report.rates.flops_per_us = std::max(report.rates.flops_per_us, tensor.get<double>());
  return report;
}

Result<std::vector<TradeoffPoint>> readTradeoff(const std::string& path, const PlanInfo& plan) {
  const std::string flag = "--report-tradeoff";
  GPUC_ASSIGN_OR_RETURN(const Json json, parse(path));
  if (!json.is_array() || json.empty()) return notOf(path, flag, "not a list of plans");
  std::vector<TradeoffPoint> points;
  for (const Json& entry : json) {
    Members members(entry);
    points.push_back(
        {.kept = members.text("kept"),
         .peak_bytes = static_cast<uint64_t>(std::min(9e18, std::max(0.0, members.number("peak_bytes")))),
         .predicted_step_us = members.number("predicted_step_us"),
         .chosen = members.flag("chosen")});
    if (!members.wrong().empty()) return notOf(path, flag, "a plan without " + members.wrong());
  }
  const auto chosen =
      std::find_if(points.begin(), points.end(), [](const TradeoffPoint& point) { return point.chosen; });
  if (chosen == points.end()) return notOf(path, flag, "no plan is chosen");
  if (chosen->peak_bytes != plan.arena_bytes)
    return notOf(path, flag, otherArena(static_cast<double>(chosen->peak_bytes), plan));
  return points;
}

}  // namespace gpuc
