// A repeat as a recurrent network's, built command by command.
#pragma once

#include <string>
#include <utility>

#include "runtime/host/bands.h"
#include "test/runtime/plan_builder.h"

namespace gpuc::test {

/// Iterations of a repeat, and the floats in a row.
inline constexpr int64_t kSteps = 5, kColumns = 32;
inline constexpr uint64_t kGrain = 100;  // tiles of 100 ns: few threads would share such launches one by one
inline constexpr uint64_t kRowBytes = kColumns * 4;  // two tiles of 16 floats

/// A program whose first command is a repeat of kSteps iterations over matrices of `rows` rows.
class Recurrence {
 public:
  explicit Recurrence(int64_t rows = 16, uint32_t input_slots = 1)
      : builder(input_slots, TargetKind::host), rows_(rows), program_(&builder.program("recur", 2)) {
    body = &PlanBuilder::repeat(commands(), kSteps);
  }

  PlanBuilder builder;
  CommandList* body;  // to which commands are appended

  fb::ProgramT& program() { return *program_; }
  CommandList& commands() { return program_->streams[0]->commands; }
  uint64_t rows() const { return static_cast<uint64_t>(rows_); }
  /// Bytes of a matrix.
  uint64_t bytes() const { return rows() * kRowBytes; }

  uint32_t matrix(const std::string& name) { return stack(name, 1); }
  uint32_t stack(const std::string& name, int64_t matrices = kSteps) {
    return builder.buffer(name, DataType::f32, {matrices, rows_, kColumns});
  }
  uint32_t weight(const std::string& name) {
    return builder.buffer(name, DataType::f32, {kColumns, kColumns});
  }
  /// A matrix of a stack, which moves by `strides` matrices.
  OperandOf at(uint32_t stack, int64_t matrix, std::vector<int64_t> strides) const {
    for (int64_t& stride : strides) stride *= static_cast<int64_t>(bytes());
    return {stack, static_cast<uint64_t>(matrix) * bytes(), bytes(), std::move(strides)};
  }

  /// c = a + b, b = 2 a: two tiles of each row.
  void add(const OperandOf& a, const OperandOf& b, const OperandOf& c, const std::string& cut = "ccc") {
    launch("test_add", {a, b}, c, cut);
  }
  void doubled(const OperandOf& a, const OperandOf& b, const std::string& cut = "cc") {
    launch("test_double", {a}, b, cut);
  }
  /// c = a · w
  fb::MatmulT& multiply(const OperandOf& a, uint32_t w, const OperandOf& c) {
    fb::MatmulT& matmul =
        builder.matmul(*body, a.buffer, w, c.buffer, rows(), kColumns, static_cast<uint64_t>(kColumns));
    matmul.a = builder.operand(a);
    matmul.c = builder.operand(c);
    return matmul;
  }

  /// Of the repeat that is `commands`' first, for so many threads.
  int bands(int threads) {
    const Plan plan = builder.parse();
    const fb::Program& program = *plan.root().programs()->Get(0);
    return bandsOf(plan.root(), *program.streams()->Get(0)->commands()->Get(0)->work_as_Repeat(), {},
                   threads);
  }

 private:
  void launch(const std::string& symbol, const std::vector<OperandOf>& reads, const OperandOf& write,
              const std::string& cut) {
    const auto [found, is_new] = kernels_.try_emplace(symbol);
    if (is_new) found->second = builder.kernel(symbol, static_cast<uint32_t>(reads.size()) + 1);
    builder.launch(*body, found->second, reads, {write}, 2 * rows(), kGrain);
    PlanBuilder::bands(*body, rows(), cut);
  }

  int64_t rows_;
  fb::ProgramT* program_;
  std::map<std::string, uint32_t> kernels_;
};

}  // namespace gpuc::test
