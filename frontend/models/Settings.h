//===- Settings.h - The keys of a zoo model and their values ----------------===//
#pragma once

#include "runtime/base/data_type.h"
#include "runtime/base/status.h"

#include <map>
#include <string>
#include <vector>

namespace gpuc::models {

/// One thing that can be chosen about a model.
struct Key {
  std::string name;
  std::string fallback; ///< The value if none is given, as it would be written.
  std::string help;
};

/// Values of a model's keys, read by type. The first value that does not read is kept as status(); what is
/// then returned is usable but means nothing.
class Settings {
public:
  /// `arguments` are key=value texts. Errors: an unknown key (all are named, and the nearest of these and of
  /// `elsewhere`, which are read by others), a key given twice, no '='.
  static Result<Settings> parse(const std::string &model, const std::vector<Key> &keys,
                                const std::vector<std::string> &arguments,
                                const std::vector<std::string> &elsewhere = {});

  const std::string &text(const std::string &key) const { return values_.at(key); }
  int64_t integer(const std::string &key, int64_t low, int64_t high);
  /// A number in [low, high).
  double number(const std::string &key, double low, double high);
  bool flag(const std::string &key);
  /// One of the texts; returns which.
  size_t choice(const std::string &key, const std::vector<std::string> &texts);
  DataType floatType(const std::string &key);
  /// Integers in [1, high] with `separator` between them; "none" is an empty list if `orNone`.
  std::vector<int64_t> integers(const std::string &key, char separator, int64_t high, bool orNone = false);

  const Status &status() const { return status_; }

private:
  void reject(const std::string &key, const std::string &wanted);

  std::map<std::string, std::string> values_;
  Status status_;
};

} // namespace gpuc::models
