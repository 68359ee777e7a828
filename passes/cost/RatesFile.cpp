//===- RatesFile.cpp - Rates as JSON ---------------------------------------------===//

#include "passes/cost/Json.h"
#include "passes/cost/Rates.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>

using namespace mlir;

namespace gpuc {
namespace {

constexpr StringLiteral kFormat =
    "gpuc-rates-4"; ///< Its number grows when families or units change, or what a rate is of.
constexpr double kMostNanoseconds = 1e9;

Status malformed(const std::string &name, const std::string &what) {
  return Status::error(name + ": " + what + "; run gpuc-calibrate again, or remove the file");
}

/// Reads members, and keeps what is wrong with the first that does not do.
class Reader {
public:
  explicit Reader(const llvm::json::Object &object) : object_(object) {}

  std::string text(StringRef key) {
    if (auto value = object_.getString(key); value && value->size() <= 256 && isPrintable(*value))
      return value->str();
    return fail(key, "a name"), "";
  }

  double number(StringRef key, double least, double most) {
    if (auto value = object_.getNumber(key); value && *value >= least && *value <= most)
      return *value;
    return fail(key, "a number from " + std::to_string(static_cast<int64_t>(least)) + " to " +
                         std::to_string(static_cast<int64_t>(most))),
           least;
  }

  const std::string &error() const { return error_; }

private:
  static bool isPrintable(StringRef text) {
    return llvm::all_of(text, [](char c) { return llvm::isPrint(c); });
  }

  void fail(StringRef key, const std::string &expected) {
    if (error_.empty())
      error_ = "its '" + key.str() + "' is not " + expected;
  }

  const llvm::json::Object &object_;
  std::string error_;
};

/// Of one family: every unit that it has a typical rate of, no others.
std::string readUnits(const llvm::json::Object &object, Family family, HostRates &rates) {
  auto &units = rates.units[static_cast<size_t>(family)];
  Reader reader(object);
  size_t known = 0;
  for (size_t unit = 0; unit < kUnitCount; ++unit)
    if (units[unit] > 0) {
      ++known;
      units[unit] = reader.number(nameOf(static_cast<Unit>(unit)), 0, kMostNanoseconds);
    }
  if (!reader.error().empty() || known == object.size())
    return reader.error();
  return "its '" + nameOf(family).str() + "' has rates that this version does not know";
}

std::string readFamilies(const llvm::json::Object &root, HostRates &rates) {
  const llvm::json::Object *families = root.getObject("nanoseconds");
  if (!families)
    return "it has no 'nanoseconds'";
  for (size_t number = 0; number < kFamilyCount; ++number) {
    const StringRef name = nameOf(static_cast<Family>(number));
    const llvm::json::Object *units = families->getObject(name);
    if (!units)
      return "it has no rates of '" + name.str() + "'";
    if (std::string error = readUnits(*units, static_cast<Family>(number), rates); !error.empty())
      return error + " (" + name.str() + ")";
  }
  return "";
}

} // namespace

std::string printRates(const HostRates &rates) {
  const HostRates typical = typicalRates();
  llvm::json::Object families;
  for (size_t family = 0; family < kFamilyCount; ++family) {
    llvm::json::Object units;
    for (size_t unit = 0; unit < kUnitCount; ++unit)
      if (typical.units[family][unit] > 0)
        units[nameOf(static_cast<Unit>(unit))] = rates.units[family][unit];
    families[nameOf(static_cast<Family>(family))] = std::move(units);
  }
  llvm::json::Object root{{"format", kFormat},
                          {"cpu", rates.cpu},
                          {"target", rates.target},
                          {"threads", rates.threads},
                          {"speedup", rates.speedup},
                          {"fork", rates.forkNanoseconds},
                          {"step", rates.stepNanoseconds},
                          {"iteration", rates.iterationNanoseconds},
                          {"near_bytes", rates.caches.near},
                          {"far_bytes", rates.caches.far},
                          {"nanoseconds", std::move(families)}};
  return llvm::formatv("{0:2}\n", llvm::json::Value(std::move(root))).str();
}

Result<HostRates> parseRates(StringRef text, const std::string &name) {
  const Result<llvm::json::Value> value = parseJson(text);
  if (!value.ok())
    return malformed(name, value.message());
  const llvm::json::Object *root = value->getAsObject();
  auto format = root ? root->getString("format") : std::nullopt;
  if (!format || !format->starts_with("gpuc-rates"))
    return malformed(name, "no rates of gpuc-calibrate");
  if (*format != kFormat)
    return malformed(name, "rates of another version of gpuc");
  HostRates rates = typicalRates();
  constexpr double kMostBytes = 1ll << 40;
  Reader reader(*root);
  rates.cpu = reader.text("cpu");
  rates.target = reader.text("target");
  rates.threads = static_cast<int>(reader.number("threads", 1, 4096));
  rates.speedup = reader.number("speedup", 1, 4096);
  rates.forkNanoseconds = reader.number("fork", 0, kMostNanoseconds);
  rates.stepNanoseconds = reader.number("step", 0, kMostNanoseconds);
  rates.iterationNanoseconds = reader.number("iteration", 0, kMostNanoseconds);
  rates.caches.near = static_cast<int64_t>(reader.number("near_bytes", 1, kMostBytes));
  rates.caches.far = static_cast<int64_t>(reader.number("far_bytes", 1, kMostBytes));
  std::string error = reader.error().empty() ? readFamilies(*root, rates) : reader.error();
  if (!error.empty())
    return malformed(name, error);
  return rates;
}

} // namespace gpuc
