// Plans built by hand, for tests: buffers are placed one behind the other, commands are written down as they
// come.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/data_type.h"
#include "runtime/plan/plan.h"
#include "runtime/plan/plan_generated.h"

namespace gpuc::test {

using CommandList = std::vector<std::unique_ptr<fb::CommandT>>;

/// The device under test: what GPUC_TEST_DEVICE says (cuda), else host.
TargetKind testDevice();

/// The bytes of test/runtime/kernels.c as a shared object, or kernels.ptx.
std::vector<uint8_t> testKernels(TargetKind target);

struct OperandOf {
  uint32_t buffer = 0;
  uint64_t offset = 0;
  uint64_t size = 0;  // 0: all of the buffer behind `offset`
  std::vector<int64_t> strides = {};
};

class PlanBuilder {
 public:
  explicit PlanBuilder(uint32_t input_slots = 1, TargetKind target = testDevice());

  /// Everything built so far, to be changed at will before seal().
  fb::PlanT plan;

  uint32_t buffer(const std::string& name, DataType type, std::vector<int64_t> shape);
  /// One of which there are input_slots.
  uint32_t slotBuffer(const std::string& name, DataType type, std::vector<int64_t> shape);
  /// A buffer and the variable that lives in it.
  uint32_t variable(const std::string& name, DataType type, std::vector<int64_t> shape,
                    fb::VariableKind kind = fb::VariableKind::parameter);
  uint32_t kernel(const std::string& symbol, uint32_t operands);

  fb::ProgramT& program(const std::string& name, int streams = 1);
  static uint32_t input(fb::ProgramT& program, const std::string& name, uint32_t buffer,
                        fb::InputRole role = fb::InputRole::data);
  static uint32_t output(fb::ProgramT& program, const std::string& name, uint32_t buffer);

  // Commands, appended to a list.
  void launch(CommandList& list, uint32_t kernel, const std::vector<OperandOf>& reads,
              const std::vector<OperandOf>& writes, uint64_t tiles = 1, uint64_t grain = 1);
  /// The last launch's tiles fall into so many rows, by which the operands with an r go: "r-r".
  static void rows(CommandList& list, uint64_t count, const std::string& by_rows);
  void copyIn(CommandList& list, uint32_t port, OperandOf to);
  void copyOut(CommandList& list, uint32_t port, OperandOf from);
  void copy(CommandList& list, OperandOf from, OperandOf to);
  void fill(CommandList& list, OperandOf to, std::vector<uint8_t> pattern = {});
  /// One matrix, neither transposed; what is returned may be changed.
  fb::MatmulT& matmul(CommandList& list, uint32_t a, uint32_t b, uint32_t c, uint64_t m, uint64_t n,
                      uint64_t k);
  /// conv(x, w) -> y, or a gradient of it, over what `a` and `b` are for the kind; x is (n, c, h, w), w
  /// (o, c, kh, kw), padding `padding` all around. What is returned may be changed.
  fb::ConvT& conv(CommandList& list, fb::ConvKind kind, uint32_t x, uint32_t w, uint32_t y,
                  uint64_t padding = 0);
  /// attention(q, k, v) -> y and logs, or what its gradient has in common with it; dense, scale 1. q is (b,
  /// h, t, d), k (b, g, s, d), v (b, g, s, e).
  fb::AttentionT& attention(CommandList& list, fb::AttentionKind kind, uint32_t q, uint32_t k, uint32_t v,
                            uint32_t y, uint32_t logs);
  /// y = the sum of as many parts as x holds of it.
  fb::AllReduceT& allReduce(CommandList& list, DataType type, uint32_t x, uint32_t y);
  fb::ReduceScatterT& reduceScatter(CommandList& list, DataType type, uint32_t x, uint32_t y);
  fb::AllGatherT& allGather(CommandList& list, DataType type, uint32_t x, uint32_t y);
  fb::SumT& sum(CommandList& list, DataType type, uint32_t x, uint32_t y);
  static void record(CommandList& list, uint32_t event);
  static void wait(CommandList& list, uint32_t event, uint32_t distance = 0);
  /// Appends a repeat, or a parallel, and returns the list of what it holds.
  static CommandList& repeat(CommandList& list, uint64_t count);
  static CommandList& parallel(CommandList& list, uint64_t parts, bool by_rows = false);

  /// The file.
  std::string seal() const;
  /// The same, read back; the test fails if it does not pass the verifier.
  Plan parse() const;

  std::unique_ptr<fb::OperandT> operand(const OperandOf& operand) const;

 private:
  TargetKind target() const { return static_cast<TargetKind>(plan.target->kind); }
  uint32_t place(const std::string& name, DataType type, std::vector<int64_t> shape, uint32_t slots);
};

/// The bytes of a little-endian value, as a fill's pattern.
template <typename T>
std::vector<uint8_t> patternOf(T value) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(&value);
  return {bytes, bytes + sizeof(value)};
}

/// A plan as the compiler writes it, in small: init, train_step with a copy stream and a repeat,
/// predict. It uses every kind of command and table that a plan for any target and any ranks can have.
PlanBuilder everythingPlan(TargetKind target = testDevice());

/// predict(q, k, v, dy, mask): attention with dropout and its gradient, all that they write outputs. For the
/// host.
PlanBuilder attentionPlan();

/// predict(x, w, dy): y = conv(x, w), and dx and dw from dy, all of them outputs. The workspace is the
/// host's.
PlanBuilder convolutionsPlan(DataType type = DataType::f32, TargetKind target = TargetKind::host);

/// f(x): sums over ranks, of which there is one here, of two tensors that are shared out and one that a rank
/// owns; all are gathered again. A rank's part of each is a variable. For the host.
PlanBuilder sharesPlan();

/// Copies, fills, repeats and events on two streams with slots, and no code, which a mutation could not keep
/// honest.
PlanBuilder codelessPlan();

}  // namespace gpuc::test
