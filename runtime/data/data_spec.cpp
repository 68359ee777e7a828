#include "runtime/data/data_spec.h"

#include "runtime/base/flags.h"
#include "runtime/base/parse.h"
#include "runtime/base/quote.h"
#include "runtime/data/binding.h"
#include "runtime/data/idx.h"
#include "runtime/data/npy_dataset.h"
#include "runtime/data/synthetic.h"

namespace gpuc {
namespace {

using Pair = std::pair<std::string, std::string>;

Status malformed(const std::string& text, const std::string& why) {
  return Status::error("data " + inQuotes(text) + ": " + why);
}

/// "a=b,c=d" as pairs.
Result<std::vector<Pair>> splitPairs(const std::string& text, const std::string& list) {
  std::vector<Pair> pairs;
  for (size_t begin = 0; begin <= list.size();) {
    size_t end = std::min(list.find(',', begin), list.size());
    std::string item = list.substr(begin, end - begin);
    size_t equals = item.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == item.size())
      return malformed(text, "expected NAME=VALUE, found " + inQuotes(item));
    pairs.emplace_back(item.substr(0, equals), item.substr(equals + 1));
    begin = end + 1;
  }
  return pairs;
}

Status parseSynthetic(const std::string& text, const std::vector<Pair>& pairs, DataSpec& spec) {
  bool has_size = false, has_seed = false;
  for (const auto& [key, value] : pairs) {
    if (key != "size" && key != "seed")
      return malformed(text, "unknown key " + inQuotes(key) + "; did you mean '" +
                                 nearestName(key, {"size", "seed"}) + "'?");
    if (key == "size" ? std::exchange(has_size, true) : std::exchange(has_seed, true))
      return malformed(text, "key '" + key + "' is given twice");
    Result<int64_t> number = parseInt64(value);
    if (!number.ok())
      return malformed(text, key + ": expected an integer of 64 bits, found " + inQuotes(value));
    if (*number < (key == "size" ? 1 : 0))
      return malformed(text,
                       key + " " + inQuotes(value) + " must be at least " + (key == "size" ? "1" : "0"));
    if (key == "size")
      spec.size = *number;
    else
      spec.seed = static_cast<uint64_t>(*number);
  }
  return okStatus();
}

Result<std::unique_ptr<Dataset>> openUnbound(const DataSpec& spec, std::span<const InputSpec> inputs) {
  switch (spec.kind) {
    case DataSpec::Kind::idx:
      return openIdx(spec.prefix);
    case DataSpec::Kind::npy:
      return openNpyDataset(spec.files);
    case DataSpec::Kind::synthetic:
      return makeSyntheticDataset(inputs, spec.size, spec.seed);
  }
  return Status::error("unknown kind of data");
}

}  // namespace

Result<DataSpec> parseDataSpec(const std::string& text) {
  size_t colon = text.find(':');
  std::string kind = text.substr(0, colon);
  std::string rest = colon == std::string::npos ? "" : text.substr(colon + 1);
  if (kind != "idx" && kind != "npy" && kind != "synthetic")
    return malformed(text, "unknown kind " + inQuotes(kind) + "; did you mean '" +
                               nearestName(kind, {"idx", "npy", "synthetic"}) +
                               "'? (idx:PREFIX, npy:NAME=FILE,…, synthetic:size=N)");
  DataSpec spec;
  if (kind == "idx") {
    if (rest.empty()) return malformed(text, "expected idx:PREFIX, as in idx:data/train");
    spec.prefix = rest;
    return spec;
  }
  if (rest.empty())
    return malformed(text, kind == "npy" ? "expected npy:NAME=FILE,…" : "expected synthetic:size=N");
  GPUC_ASSIGN_OR_RETURN(std::vector<Pair> pairs, splitPairs(text, rest));
  if (kind == "npy") {
    spec.kind = DataSpec::Kind::npy;
    spec.files = std::move(pairs);
    return spec;
  }
  spec.kind = DataSpec::Kind::synthetic;
  GPUC_RETURN_IF_ERROR(parseSynthetic(text, pairs, spec));
  if (spec.size == 0) return malformed(text, "expected size=N");
  return spec;
}

Result<BoundDataset> openDataset(const std::string& text, std::span<const InputSpec> inputs) {
  GPUC_ASSIGN_OR_RETURN(DataSpec spec, parseDataSpec(text));
  GPUC_ASSIGN_OR_RETURN(std::unique_ptr<Dataset> dataset, openUnbound(spec, inputs));
  GPUC_ASSIGN_OR_RETURN(std::vector<size_t> binding, bindFields(*dataset, inputs));
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].range > 0 && spec.kind != DataSpec::Kind::synthetic)
      GPUC_RETURN_IF_ERROR(checkRange(*dataset, binding[i], inputs[i].range));
  return BoundDataset{std::move(dataset), std::move(binding)};
}

}  // namespace gpuc
