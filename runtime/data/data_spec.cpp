#include "runtime/data/data_spec.h"

#include "runtime/base/flags.h"
#include "runtime/base/parse.h"
#include "runtime/base/quote.h"
#include "runtime/data/binding.h"
#include "runtime/data/formats.h"

namespace gpuc {
namespace {

using Pair = std::pair<std::string, std::string>;

struct KindOfData {
  const char* name;
  DataSpec::Kind kind;
  const char* form;     // how it is written
  const char* example;  // of a kind that takes one path, else null
};

constexpr KindOfData kKinds[] = {
    {"idx", DataSpec::Kind::idx, "idx:PREFIX", "idx:data/train"},
    {"npy", DataSpec::Kind::npy, "npy:NAME=FILE,…", nullptr},
    {"images", DataSpec::Kind::images, "images:FOLDER", "images:data/train"},
    {"text", DataSpec::Kind::text, "text:FILE", "text:data/train.txt"},
    {"tokens", DataSpec::Kind::tokens, "tokens:FILE", "tokens:data/train.bin"},
    {"synthetic", DataSpec::Kind::synthetic, "synthetic:size=N", nullptr},
};

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
      return openIdx(spec.path, inputs);
    case DataSpec::Kind::npy:
      return openNpyDataset(spec.files, inputs);
    case DataSpec::Kind::images:
      return openImages(spec.path, inputs);
    case DataSpec::Kind::text:
      return openTokens(spec.path, TokenFormat::bytes, inputs);
    case DataSpec::Kind::tokens:
      return openTokens(spec.path, TokenFormat::uint16, inputs);
    case DataSpec::Kind::synthetic:
      return makeSyntheticDataset(inputs, spec.size, spec.seed);
  }
  return Status::error("unknown kind of data");
}

Result<const KindOfData*> findKind(const std::string& text, const std::string& name) {
  std::vector<std::string> names;
  std::string forms;
  for (const KindOfData& kind : kKinds) {
    if (name == kind.name) return &kind;
    names.push_back(kind.name);
    forms += (forms.empty() ? "" : ", ") + std::string(kind.form);
  }
  return malformed(text, "unknown kind " + inQuotes(name) + "; did you mean '" + nearestName(name, names) +
                             "'? (" + forms + ")");
}

}  // namespace

Result<DataSpec> parseDataSpec(const std::string& text) {
  size_t colon = text.find(':');
  GPUC_ASSIGN_OR_RETURN(const KindOfData* kind, findKind(text, text.substr(0, colon)));
  std::string rest = colon == std::string::npos ? "" : text.substr(colon + 1);
  DataSpec spec;
  spec.kind = kind->kind;
  if (rest.empty())
    return malformed(text, std::string("expected ") + kind->form +
                               (kind->example ? std::string(", as in ") + kind->example : ""));
  if (kind->example) {
    spec.path = rest;
    return spec;
  }
  GPUC_ASSIGN_OR_RETURN(std::vector<Pair> pairs, splitPairs(text, rest));
  if (spec.kind == DataSpec::Kind::npy) {
    spec.files = std::move(pairs);
    return spec;
  }
  GPUC_RETURN_IF_ERROR(parseSynthetic(text, pairs, spec));
  if (spec.size == 0) return malformed(text, "expected size=N");
  return spec;
}

std::vector<std::string> pathsOf(const DataSpec& spec) {
  switch (spec.kind) {
    case DataSpec::Kind::idx:
      return idxPaths(spec.path);
    case DataSpec::Kind::npy: {
      std::vector<std::string> paths;
      for (const auto& [name, path] : spec.files) paths.push_back(path);
      return paths;
    }
    case DataSpec::Kind::images:
    case DataSpec::Kind::text:
    case DataSpec::Kind::tokens:
      return {spec.path};
    case DataSpec::Kind::synthetic:
      break;
  }
  return {};
}

Result<BoundDataset> openDataset(const std::string& text, std::span<const InputSpec> inputs) {
  GPUC_ASSIGN_OR_RETURN(DataSpec spec, parseDataSpec(text));
  GPUC_ASSIGN_OR_RETURN(std::unique_ptr<Dataset> dataset, openUnbound(spec, inputs));
  GPUC_ASSIGN_OR_RETURN(std::vector<size_t> binding, bindFields(*dataset, inputs));
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].range > 0 && spec.kind != DataSpec::Kind::synthetic)
      GPUC_RETURN_IF_ERROR(checkRange(*dataset, binding[i], inputs[i].range, inputs[i].ignored));
  return BoundDataset{std::move(dataset), std::move(binding)};
}

}  // namespace gpuc
