//===- Settings.cpp - The keys of a zoo model and their values --------------===//

#include "frontend/models/Settings.h"

#include "runtime/base/flags.h"
#include "runtime/base/parse.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <cstdio>

namespace gpuc::models {

Result<Settings> Settings::parse(const std::string &model, const std::vector<Key> &keys,
                                 const std::vector<std::string> &arguments,
                                 const std::vector<std::string> &elsewhere) {
  Settings settings;
  std::vector<std::string> names;
  for (const Key &key : keys) {
    names.push_back(key.name);
    settings.values_[key.name] = key.fallback;
  }
  std::map<std::string, bool> given;
  for (const std::string &argument : arguments) {
    size_t equals = argument.find('=');
    if (equals == std::string::npos)
      return Status::error("'" + argument + "' is not key=value; keys of " + model + ": " +
                           llvm::join(names, " "));
    std::string key = argument.substr(0, equals);
    if (!llvm::is_contained(names, key)) {
      std::vector<std::string> known = names;
      known.insert(known.end(), elsewhere.begin(), elsewhere.end());
      return Status::error(model + " has no key '" + key + "'; the nearest is '" + nearestName(key, known) +
                           "', all are: " + llvm::join(names, " "));
    }
    if (std::exchange(given[key], true))
      return Status::error("key '" + key + "' is given twice");
    settings.values_[key] = argument.substr(equals + 1);
  }
  return settings;
}

void Settings::reject(const std::string &key, const std::string &wanted) {
  if (status_.ok())
    status_ = Status::error(key + "=" + text(key) + ": expected " + wanted);
}

int64_t Settings::integer(const std::string &key, int64_t low, int64_t high) {
  Result<int64_t> value = parseInt64(text(key));
  if (value.ok() && *value >= low && *value <= high)
    return *value;
  reject(key, "an integer in [" + std::to_string(low) + ", " + std::to_string(high) + "]");
  return low;
}

double Settings::number(const std::string &key, double low, double high) {
  Result<double> value = parseDouble(text(key));
  if (value.ok() && *value >= low && *value < high)
    return *value;
  char wanted[80];
  std::snprintf(wanted, sizeof(wanted), "a number in [%g, %g)", low, high);
  reject(key, wanted);
  return low;
}

size_t Settings::choice(const std::string &key, const std::vector<std::string> &texts) {
  auto found = llvm::find(texts, text(key));
  if (found != texts.end())
    return found - texts.begin();
  reject(key, "one of " + llvm::join(texts, ", "));
  return 0;
}

bool Settings::flag(const std::string &key) { return choice(key, {"false", "true"}) == 1; }

DataType Settings::floatType(const std::string &key) {
  return choice(key, {"f32", "f64"}) == 1 ? DataType::f64 : DataType::f32;
}

std::vector<int64_t> Settings::integers(const std::string &key, char separator, int64_t high, bool orNone) {
  std::vector<int64_t> values;
  if (orNone && text(key) == "none")
    return values;
  llvm::SmallVector<llvm::StringRef> parts;
  llvm::StringRef(text(key)).split(parts, separator);
  for (llvm::StringRef part : parts) {
    Result<int64_t> value = parseInt64(part);
    if (!value.ok() || *value < 1 || *value > high) {
      reject(key, std::string("integers in [1, ") + std::to_string(high) + "] with '" + separator +
                      "' between them" + (orNone ? ", or none" : ""));
      return {1};
    }
    values.push_back(*value);
  }
  return values;
}

} // namespace gpuc::models
