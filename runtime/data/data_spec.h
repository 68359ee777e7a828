// What --data says, turned into an open data set that fits the plan.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/data/dataset.h"

namespace gpuc {

/// A data set and, for each input of the plan, the field that feeds it.
struct BoundDataset {
  std::shared_ptr<const Dataset> dataset;
  std::vector<size_t> field_of_input;
};

/// A specification taken apart; no file is touched.
struct DataSpec {
  enum class Kind { idx, npy, images, text, tokens, synthetic } kind = Kind::idx;
  std::string path;                                        // idx: a prefix; images: a folder; text, tokens
  std::vector<std::pair<std::string, std::string>> files;  // npy: (field, path)
  int64_t size = 0;                                        // synthetic
  uint64_t seed = 0;                                       // synthetic
};

/// Reads `idx:PREFIX`, `npy:NAME=FILE[,NAME=FILE…]`, `images:FOLDER`, `text:FILE`, `tokens:FILE` or
/// `synthetic:size=N[,seed=S]`. Errors quote what is wrong and name the nearest known kind or key.
Result<DataSpec> parseDataSpec(const std::string& text);

/// The files, or the folder, that such data are read from, whether they are there or not.
std::vector<std::string> pathsOf(const DataSpec& spec);

/// Parses, opens, binds to the plan's inputs (see bindFields) and checks every value of an input with a
/// range (see checkRange).
Result<BoundDataset> openDataset(const std::string& text, std::span<const InputSpec> inputs);

}  // namespace gpuc
