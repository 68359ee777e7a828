// A loop over time as a recurrent network's, taken by rows, built command by command.
#pragma once

#include <string>
#include <utility>

#include "runtime/host/row_parts.h"
#include "test/runtime/plan_builder.h"

namespace gpuc::test {

/// Iterations of a repeat, and the floats in a row.
inline constexpr int64_t kSteps = 5, kColumns = 32;
inline constexpr uint64_t kGrain = 100;  // tiles of 100 ns: few threads would share such launches one by one
inline constexpr uint64_t kRowBytes = kColumns * 4;  // two tiles of 16 floats

/// A program whose first command is a parallel by rows of a repeat of kSteps iterations over matrices of
/// `rows` rows.
class Recurrence {
 public:
  explicit Recurrence(int64_t rows = 16, uint32_t input_slots = 1)
      : builder(input_slots, TargetKind::host), rows_(rows), program_(&builder.program("recur", 2)) {
    body = &PlanBuilder::repeat(PlanBuilder::parallel(commands(), this->rows(), /*by_rows=*/true), kSteps);
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
  /// A matrix of a stack, which moves by `strides` matrices in the repeats around it.
  OperandOf at(uint32_t stack, int64_t matrix, std::vector<int64_t> strides) const {
    for (int64_t& stride : strides) stride *= static_cast<int64_t>(bytes());
    return {stack, static_cast<uint64_t>(matrix) * bytes(), bytes(), throughParallel(std::move(strides))};
  }
  /// Strides, of which those that the parallel has are 0.
  std::vector<int64_t> throughParallel(std::vector<int64_t> strides) const {
    if (strides.size() > repeats_around_)
      strides.insert(strides.begin() + static_cast<ptrdiff_t>(repeats_around_), 0);
    return strides;
  }

  /// c = a + b, b = 2 a: two tiles of each row.
  void add(const OperandOf& a, const OperandOf& b, const OperandOf& c, const std::string& by_rows = "rrr") {
    launch("test_add", {a, b}, c, by_rows);
  }
  void doubled(const OperandOf& a, const OperandOf& b, const std::string& by_rows = "rr") {
    launch("test_double", {a}, b, by_rows);
  }
  /// c = a · w
  fb::MatmulT& multiply(const OperandOf& a, uint32_t w, const OperandOf& c) {
    fb::MatmulT& matmul =
        builder.matmul(*body, a.buffer, w, c.buffer, rows(), kColumns, static_cast<uint64_t>(kColumns));
    matmul.a = builder.operand(a);
    matmul.c = builder.operand(c);
    return matmul;
  }

  /// The parts of the parallel, which are its rows where nobody says otherwise.
  void setParts(uint64_t parts) { commands()[0]->work.AsParallel()->parts = parts; }

  /// Makes the first command a repeat of kSteps iterations around a parallel, whose own has `steps`.
  void setRepeatAround(uint64_t steps) {
    around_ = &PlanBuilder::repeat(commands(), kSteps);
    commands().front() = std::move(commands().back());
    commands().pop_back();
    body = &PlanBuilder::repeat(PlanBuilder::parallel(*around_, rows(), /*by_rows=*/true), steps);
    repeats_around_ = 1;
  }
  /// Appends to the repeat around the parallel what `build` does.
  template <typename Build>
  void inFront(Build build) {
    std::unique_ptr<fb::CommandT> parallel = std::move(around_->back());
    around_->pop_back();
    CommandList* within = std::exchange(body, around_);
    build();
    body = within;
    around_->push_back(std::move(parallel));
  }

  /// What the reader has against it.
  std::string error() const {
    Result<Plan> plan = Plan::parse(builder.seal());
    return plan.ok() ? "" : plan.message();
  }

  /// Into how many parts the parallel that is `commands`' first falls for so many threads.
  uint64_t parts(uint64_t threads) const {
    const Plan plan = builder.parse();
    const fb::Program& program = *plan.root().programs()->Get(0);
    return rowPartsOf(*program.streams()->Get(0)->commands()->Get(0)->work_as_Parallel(), threads);
  }

 private:
  void launch(const std::string& symbol, const std::vector<OperandOf>& reads, const OperandOf& write,
              const std::string& by_rows) {
    const auto [found, is_new] = kernels_.try_emplace(symbol);
    if (is_new) found->second = builder.kernel(symbol, static_cast<uint32_t>(reads.size()) + 1);
    builder.launch(*body, found->second, reads, {write}, 2 * rows(), kGrain);
    PlanBuilder::rows(*body, rows(), by_rows);
  }

  int64_t rows_;
  fb::ProgramT* program_;
  CommandList* around_ = nullptr;
  size_t repeats_around_ = 0;  // the parallel
  std::map<std::string, uint32_t> kernels_;
};

}  // namespace gpuc::test
