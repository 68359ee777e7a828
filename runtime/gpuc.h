// gpuc's runtime, all of it that a user includes: load a plan, make a session, run its programs.
//
//   GPUC_ASSIGN_OR_RETURN(gpuc::Plan plan, gpuc::Plan::load("mlp.plan"));
//   GPUC_ASSIGN_OR_RETURN(gpuc::Session session, gpuc::Session::create(plan));
//   GPUC_RETURN_IF_ERROR(session.initialize());
//   GPUC_ASSIGN_OR_RETURN(gpuc::ProgramId step, session.program("train_step"));
//   gpuc::HostTensorView batch[] = {{pixels, gpuc::DataType::ui8, x_shape},
//                                   {labels, gpuc::DataType::i32, labels_shape}};
//   GPUC_RETURN_IF_ERROR(session.run(step, batch));
//   GPUC_RETURN_IF_ERROR(session.wait());
//   float loss_sum = *static_cast<const float*>(session.output(step, 0).data);
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/host_tensor.h"  // HostTensorView, TensorSpec, DataType
#include "runtime/base/status.h"       // Status, Result: every error is one line of text
#include "runtime/exec/devices.h"      // listDevices(); DeviceInfo, MemoryUse, ProfileEvent
#include "runtime/plan/plan.h"  // Plan, PlanInfo: its programs, their inputs and outputs, its variables

namespace gpuc {

class Communicator;  // runtime/comm/communicator.h

struct SessionOptions {
  std::string device = "auto";  // "host", "cuda", "cuda:N"; "auto" is what the plan was compiled for
  int threads = 0;  // that compute, the caller's included; cuda: that copy a large batch, 16 at most;
                    // 0 is one for each core
  std::optional<uint64_t> seed = {};  // instead of the plan's own
  bool strict = false;                // refuse a library of another minor version, whose bits may differ
  bool check_memory = false;  // poison the arena; host: again what is dead between commands, guard its end,
                              // copy every input into it
  std::optional<uint64_t> delay_seed = {};  // host: sleep at random before commands, on each stream, which
                                            // may change no bit
  size_t profile_events = 0;                // host: keep the times of so many commands of each stream
  Communicator* communicator = nullptr;     // to the other ranks, for a plan that is data parallel; it must
                                            // outlive the session. Of GPUs each rank takes another
};

/// An output, and a hold on the memory that it lies in: the session may end, and the bytes stay until the
/// last such view is gone. A HostTensorView that is made of it has no hold.
struct OutputView : HostTensorView {
  std::shared_ptr<const void> memory;
};

/// Where a variable lies, for whoever shares it with the session, and a hold on that memory, as OutputView
/// has.
struct VariableView {
  std::byte* data = nullptr;
  const TensorSpec* spec = nullptr;  // valid as long as the memory is
  std::shared_ptr<const void> memory;
};

/// A program of a session's plan; see Session::program.
struct ProgramId {
  uint32_t index = 0;
};

/// A plan on a device, with the state of its variables. One thread at a time uses a session; sessions do not
/// know of one another. All memory is allocated by create(): run, wait, output, readVariable and
/// writeVariable allocate nothing unless they fail, but for a GPU's second run of a program, which makes CUDA
/// graphs of it (docs/cuda.md). It is given back, all of it, when the session ends and no OutputView or
/// VariableView of it is left.
class Session {
 public:
  /// Loads the plan's code and constants into the device's one arena. Variables hold nothing useful yet, but
  /// for `seed` and `step`: follow with initialize(), or write each of them. Errors: no such device; a device
  /// that the plan was not compiled for; no memory.
  static Result<Session> create(const Plan& plan, const SessionOptions& options = {});
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  /// Sets the variable `seed` (i64) to the options' or the plan's seed, `step` (i64) to 0, and, if the plan
  /// has them, `rank` and `world_size` (i64) to the communicator's, 0 and 1 without one; then runs the
  /// program `init`, which gives all others their first values.
  Status initialize();

  /// The program with this name: train_step, eval_step, predict, or a function of yours. The error names
  /// those that exist.
  Result<ProgramId> program(const std::string& name) const;

  /// Enqueues one run. `inputs` are those that plan().info().programs[id.index].inputs lists, in that order,
  /// with just that type and shape; they may be reused when this returns. The host reads inputs in place
  /// whose data are aligned to 64 bytes, unless they are an output, and copies others. `rows`: how many rows
  /// of the batch hold samples, the rest being padding that counts as nothing; -1 is all. Errors name the
  /// input, and what was found and expected: another type or shape, an integer outside the input's range (a
  /// label, a token; padding too); a program of another session's plan. Nothing has run then.
  Status run(ProgramId id, std::span<const HostTensorView> inputs, int32_t rows = -1);

  /// Returns when all that was enqueued is done.
  Status wait();

  /// Output `index` of the last run of a program, after wait(). The view shows it until the next run of any
  /// program, or for good if the session ends before. Of an output that the plan does not have its data are
  /// null.
  OutputView output(ProgramId id, size_t index);

  /// Copies a variable out of or into the device, after wait(). `bytes` has exactly its size. What ranks
  /// share out (VariableInfo::is_share, owner) is read whole, by all of them at once; what is written, whole
  /// too, each takes its share of, if it has any.
  Status readVariable(const std::string& name, std::span<std::byte> bytes);
  Status writeVariable(const std::string& name, std::span<const std::byte> bytes);

  /// The variable itself, on the host: it keeps its place for good, and is read and written there between
  /// runs, after wait(). Errors: no such variable; a GPU has it; ranks share it out.
  Result<VariableView> variable(const std::string& name);

  const Plan& plan() const;
  const DeviceInfo& device() const;
  const std::vector<std::string>& warnings() const;  // of create(): one line each

  /// What the session has allocated: the arena, by what its bytes are for, and what lies beside it. It takes
  /// as long as a walk through the plan.
  MemoryUse memory() const;
  std::vector<ProfileEvent> profile() const;

 private:
  struct State;
  static Result<Session> open(const Plan& plan, const SessionOptions& options);
  explicit Session(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace gpuc
