#include "runtime/report/nonfinite.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <map>
#include <utility>

#include "runtime/base/quote.h"

namespace gpuc {
namespace {

bool isSource(const CheckInfo& check) { return check.op == "input" || check.op == "variable"; }

/// What a table adds up: a layer, or where there is no name the place, or the op.
std::string placeOf(const CheckInfo& check) {
  if (isSource(check)) return check.op + " " + inQuotes(check.layer);
  if (!check.layer.empty()) return inQuotes(check.layer);
  return check.location.empty() ? check.op : check.location;
}

/// "log in layer 'head' (model.mlir:12:5)"; what is not known is left out.
std::string nameOf(const CheckInfo& check) {
  if (isSource(check)) return placeOf(check);
  std::string layer = check.layer.empty() ? "" : "layer " + inQuotes(check.layer);
  std::string location = check.location.empty() ? "" : "(" + check.location + ")";
  std::string where = layer + (layer.empty() || location.empty() ? "" : " ") + location;
  if (check.backward) return check.op + " in the backward pass" + (where.empty() ? "" : " of " + where);
  return check.op + (layer.empty() ? "" : " in") + (where.empty() ? "" : " " + where);
}

/// Whether the plan keeps the windows of --skip=outliers.
bool leavesOutOutliers(const Session& session) {
  const std::vector<VariableInfo>& variables = session.plan().info().variables;
  return std::any_of(variables.begin(), variables.end(),
                     [](const VariableInfo& variable) { return variable.spec.name == "step/recorded"; });
}

}  // namespace

Nonfinite::Nonfinite(const Session& session, ProgramId program) : program_(program) {
  const ProgramInfo& info = session.plan().info().programs[program.index];
  auto skipped = std::find_if(info.outputs.begin(), info.outputs.end(),
                              [](const TensorSpec& spec) { return spec.name == "skipped"; });
  skipped_ = static_cast<size_t>(skipped - info.outputs.begin());
  for (const ChecksInfo& checks : info.checks) {
    output_ = checks.output;
    checks_ = checks.checks;
  }
  totals_.resize(checks_.size());
  if (leavesOutOutliers(session)) return;
  auto backward =
      std::find_if(checks_.begin(), checks_.end(), [](const CheckInfo& check) { return check.backward; });
  if (backward != checks_.end()) forward_ = static_cast<size_t>(backward - checks_.begin());
}

bool Nonfinite::wasSkipped(Session& session) const {
  const ProgramInfo& info = session.plan().info().programs[program_.index];
  return skipped_ < info.outputs.size() && info.outputs[skipped_].type == DataType::i1 &&
         *static_cast<const uint8_t*>(session.output(program_, skipped_).data) != 0;
}

Status Nonfinite::take(Session& session, int64_t step) {
  return checks_.empty() ? okStatus() : take(session, step, wasSkipped(session));
}

Status Nonfinite::take(Session& session, int64_t step, bool skipped) {
  if (checks_.empty()) return okStatus();
  const char* counts = static_cast<const char*>(session.output(program_, output_).data);
  size_t first = checks_.size();
  int64_t first_count = 0;
  for (size_t i = 0; i < checks_.size(); ++i) {
    int32_t count;
    std::memcpy(&count, counts + i * sizeof(count), sizeof(count));
    totals_[i] += count;
    if (count != 0 && first == checks_.size()) {
      first = i;
      first_count = count;
    }
  }
  if (first == checks_.size() || (skipped && first >= forward_)) return okStatus();
  return Status::error(errorText(step, first, first_count));
}

std::string Nonfinite::errorText(int64_t step, size_t first, int64_t count) const {
  const CheckInfo& check = checks_[first];
  std::string text = "step " + std::to_string(step) + ": " + nameOf(check) +
                     (isSource(check) ? " holds " : " made ") + std::to_string(count) +
                     (count == 1 ? " value that is NaN or infinite" : " values that are NaN or infinite");
  return isSource(check) ? text : text + "; before it all were finite";
}

std::vector<std::string> Nonfinite::table() const {
  std::map<std::string, int64_t> sums;
  for (size_t i = 0; i < checks_.size(); ++i)
    if (totals_[i] != 0) sums[placeOf(checks_[i])] += totals_[i];
  std::vector<std::pair<std::string, int64_t>> rows(sums.begin(), sums.end());
  std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  std::vector<std::string> lines;
  if (!rows.empty()) lines.push_back("NaN or infinite, by where they were made:");
  for (const auto& [place, count] : rows) {
    char number[32];
    std::snprintf(number, sizeof(number), "%12" PRId64 "  ", count);
    lines.push_back(number + place);
  }
  return lines;
}

}  // namespace gpuc
