#include "runtime/report/residuals.h"

#include "runtime/plan/operands.h"

namespace gpuc {
namespace {

class Reader {
 public:
  explicit Reader(size_t buffers) : written_(buffers, Residual::none), is_read_(buffers, false) {}

  void read(const Commands* commands) {
    for (const fb::Command* command : each(commands)) {
      for (const auto& [operand, use] : operandsOf(*command))
        if (operand) add(*command, operand->buffer(), use.role);
      if (const std::optional<CommandLoop> loop = loopOf(*command)) read(loop->commands);
    }
  }

  std::vector<Residual> residuals() && {
    for (size_t i = 0; i < written_.size(); ++i)
      if (!is_read_[i]) written_[i] = Residual::none;
    return std::move(written_);
  }

 private:
  void add(const fb::Command& command, uint32_t buffer, Role role) {
    if (command.backward() && isRead(role)) is_read_[buffer] = true;
    Residual& residual = written_[buffer];
    if (!command.backward() && isWritten(role) && residual == Residual::none)
      residual = command.recomputed() ? Residual::recomputed : Residual::kept;
  }

  std::vector<Residual> written_;  // by the forward pass, as its first writer says
  std::vector<bool> is_read_;      // by the backward pass
};

}  // namespace

const char* nameOf(Residual residual) {
  constexpr const char* kNames[] = {"", "kept", "recomputed"};
  return kNames[static_cast<size_t>(residual)];
}

std::vector<Residual> residualsOf(const fb::Plan& plan) {
  Reader reader(countOf(plan.buffers()));
  for (const fb::Program* program : each(plan.programs()))
    for (const fb::Stream* stream : each(program->streams())) reader.read(stream->commands());
  std::vector<Residual> residuals = std::move(reader).residuals();
  // What lies in memory anyway, from step to step, is none.
  for (const fb::Variable* variable : each(plan.variables())) residuals[variable->buffer()] = Residual::none;
  for (const fb::Program* program : each(plan.programs()))
    for (const fb::Input* input : each(program->inputs())) residuals[input->buffer()] = Residual::none;
  return residuals;
}

}  // namespace gpuc
