//===- CompileModel.h - The compiler as a function of plain data ------------===//
//
//   gpuc::CompileRequest request{.text = model.text(), .name = "mlp"};
//   gpuc::Diagnosis wrong;
//   gpuc::Result<gpuc::Compiled> compiled = gpuc::compileModel(request, &wrong);
//
// For programs that see no MLIR: those of users, and gpuc's Python package.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "passes/CacheFolder.h"
#include "passes/base/Diagnosis.h"
#include "runtime/base/status.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gpuc {

/// What gpuc-compile's flags of these names say.
struct CompileRequest {
  std::string text = {}; ///< A module of any stage: nn::Model::text(), say.
  std::string name = {}; ///< By which errors call that text.
  /// Entries, each with its text: {"optimizer", "sgd:lr=0.1"}.
  std::vector<std::pair<std::string, std::string>> recipe = {};
  std::string target = "auto";
  std::optional<int64_t> batch = {}; ///< None: the recipe's.
  std::optional<uint64_t> seed = {};
  std::optional<int64_t> memoryBudget = {}; ///< Bytes.
  std::string checkpoint = {};              ///< Empty: the model's own, or what the budget takes.
  bool checkNumerics = false;
  bool predict = true;
  std::string cacheFolder = defaultKernelsFolder(); ///< Of compiled kernels; empty: none.
};

struct Compiled {
  std::string plan = {};   ///< The bytes of a plan's file, for Plan::parse.
  std::string report = {}; ///< What gpuc-compile --report writes.
  std::vector<Diagnosis> warnings = {};
};

/// Says nothing on stderr. Of an error `wrong`, if it is not null, has the parts that are one line in the
/// status.
Result<Compiled> compileModel(const CompileRequest &request, Diagnosis *wrong = nullptr);

} // namespace gpuc
