// A plan in memory, verified: what a session runs and what tools describe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/base/tensor_spec.h"

namespace gpuc {

namespace fb {
struct Plan;
}

enum class TargetKind : uint8_t { host, cuda };
enum class VariableKind : uint8_t { parameter, statistic, optimizer, counter };

const char* nameOf(TargetKind kind);
const char* nameOf(VariableKind kind);

/// Lives across steps and programs; bound by name.
struct VariableInfo {
  TensorSpec spec;
  VariableKind kind = VariableKind::parameter;
  uint64_t offset = 0;  // in the arena, bytes
  std::string initializer;
  bool trainable = false;
  bool is_share = false;  // a rank holds its share alone; `spec` is that of the whole
  int64_t owner = -1;     // the one rank that has it at `offset`; -1: all have it, or a share of it
};

/// What a caller passes to a program; hidden inputs, which the runtime fills, are not listed.
struct InputInfo {
  TensorSpec spec;
  int64_t range = -1;  // labels and tokens lie in [0, range); -1: not bounded
  // A value besides those, which marks a label that is left out; 0, a value of the range: there is none.
  int64_t ignored = 0;
};

/// What an element of an output counts: values that are NaN or infinite and that an op made of finite ones.
struct CheckInfo {
  std::string op;  // "log"; "input" or "variable" where they came in with the one that `layer` names
  std::string layer;
  std::string location;   // "model.mlir:12:5"
  bool backward = false;  // in the backward pass of what stands there
};

/// The output whose elements count, one for each check.
struct ChecksInfo {
  size_t output = 0;
  std::vector<CheckInfo> checks;
};

struct ProgramInfo {
  std::string name;
  std::vector<InputInfo> inputs;
  std::vector<TensorSpec> outputs;
  std::vector<ChecksInfo> checks;  // of the outputs that have them
  uint64_t peak_bytes = 0;
  bool counts_rows = false;  // has the hidden input that says how many rows of the batch hold samples
  bool counts_once =
      false;  // its loss is a sum, whose count is 1 for the whole batch, not for each rank's part
};

/// What an arena's bytes are for at the instant at which most of them are in use; as in the compiler's
/// report.
struct MemoryByCategory {
  uint64_t parameter = 0;  // variables that are not the optimizer's, and constants
  uint64_t gradient = 0;
  uint64_t optimizer = 0;
  uint64_t activation = 0;
  uint64_t workspace = 0;  // of library calls
  uint64_t input = 0;      // all slots
  uint64_t alignment_and_gaps = 0;

  uint64_t sum() const {
    return parameter + gradient + optimizer + activation + workspace + input + alignment_and_gaps;
  }
};

struct LibraryInfo {
  std::string name;
  std::string version;
};

/// The facts that do not need the commands.
struct PlanInfo {
  std::string name;
  std::string compiler_version;
  TargetKind target = TargetKind::host;
  std::string target_name;                   // "sapphirerapids", "sm_90"
  std::vector<std::string> target_features;  // what the code needs of the device
  std::vector<LibraryInfo> libraries;
  uint64_t seed = 0;
  int64_t batch = 0;             // rows per rank and microbatch
  int64_t global_batch = 0;      // rows per optimizer update
  int64_t world_size = 0;        // ranks that share variables out; 0: for any number of ranks
  uint64_t training_digest = 0;  // of what is trained and how, however it is shared out; 0: not known
  uint64_t arena_bytes = 0;
  uint32_t input_slots = 1;
  std::vector<VariableInfo> variables;
  std::vector<ProgramInfo> programs;
};

/// An ahead-of-time compiled model. Cheap to copy: copies share the bytes.
class Plan {
 public:
  /// Reads and verifies a plan file. Errors begin with the path.
  static Result<Plan> load(const std::string& path);

  /// The same from memory: header, checksum, FlatBuffer structure, then every index, range, size and name.
  /// What passes can be run without touching memory outside its arena, as far as the plan's data can say; its
  /// machine code is trusted as a program is.
  static Result<Plan> parse(std::string file);

  const PlanInfo& info() const { return contents_->info; }
  size_t fileBytes() const { return contents_->file.size(); }

  /// Of all of it, as the file's header has it.
  uint64_t checksum() const;

  /// The verified FlatBuffer, for devices and tools; see runtime/plan/plan.fbs.
  const fb::Plan& root() const { return *contents_->root; }

 private:
  struct Contents {
    std::string file;
    const fb::Plan* root = nullptr;
    PlanInfo info;
  };
  explicit Plan(std::shared_ptr<const Contents> contents) : contents_(std::move(contents)) {}

  std::shared_ptr<const Contents> contents_;
};

}  // namespace gpuc
