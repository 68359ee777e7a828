// The compiler as a function of plain data; compiler.cpp, which sees Python, then sees no MLIR.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "frontend/torch/Torch.h"
#include "runtime/base/status.h"

namespace gpuc {

/// What gpuc-compile's flags of these names say.
struct CompileRequest {
  std::string text, name;
  std::vector<std::pair<std::string, std::string>> recipe;  // entries, each with its text
  std::string target = "auto";
  std::optional<uint64_t> seed;
  std::optional<int64_t> memory_budget;
  std::string checkpoint;  // empty: the model's own, or what the budget takes
  bool check_numerics = false;
  bool predict = true;
  std::string cache_folder;  // of compiled kernels; empty: none
};

struct Compiled {
  std::string plan, report;
};

Result<Compiled> compileModel(const CompileRequest& request);

/// The model of a recorded graph, as text, or what keeps it from being one.
Result<torch::Lowered> lowerGraph(const std::string& json);

std::vector<std::pair<std::string, std::vector<std::string>>> knownOps();

}  // namespace gpuc
