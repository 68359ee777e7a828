#include "runtime/cuda/library_call.h"

namespace gpuc::cuda {
namespace {

/// Whether any of the commands, or of those that they repeat, does this work.
bool has(const Commands* commands, fb::Work work) {
  for (const fb::Command* command : each(commands)) {
    if (command->work_type() == work) return true;
    if (const std::optional<CommandLoop> loop = loopOf(*command); loop && has(loop->commands, work))
      return true;
  }
  return false;
}

/// The same of the plan's stream of this index, in any program.
bool hasOnStream(const fb::Plan& plan, uint32_t stream, fb::Work work) {
  for (const fb::Program* program : each(plan.programs()))
    if (stream < countOf(program->streams()) && has(program->streams()->Get(stream)->commands(), work))
      return true;
  return false;
}

}  // namespace

Result<Libraries> Libraries::open(const fb::Plan& plan, std::span<const Stream> streams) {
  Libraries libraries;
  libraries.dnn_.resize(streams.size());
  for (uint32_t s = 0; s < streams.size(); ++s) {
    if (!libraries.blas_ && hasOnStream(plan, s, fb::Work::Matmul)) {
      GPUC_ASSIGN_OR_RETURN(const Blas* blas, Blas::get());
      GPUC_ASSIGN_OR_RETURN(libraries.blas_, BlasHandle::create(*blas));
    }
    if (hasOnStream(plan, s, fb::Work::Conv)) {
      GPUC_ASSIGN_OR_RETURN(const Dnn* dnn, Dnn::get());
      GPUC_ASSIGN_OR_RETURN(libraries.dnn_[s], DnnHandle::create(*dnn, streams[s].get()));
    }
  }
  return libraries;
}

Status Libraries::meet(const Driver& driver, const fb::Plan& plan, Communicator& communicator,
                       CUdeviceptr arena, CUstream stream) {
  const std::vector<PlannedExchange> exchanges = rankExchangesOf(plan, arena);
  if (exchanges.empty()) return okStatus();
  GPUC_ASSIGN_OR_RETURN(ranks_, GpuRanks::meet(driver, communicator, exchanges, stream));
  return okStatus();
}

Result<std::unique_ptr<LibraryCall>> Libraries::prepare(const fb::Command& command, size_t stream,
                                                        uint32_t alignment) const {
  if (const fb::Matmul* matmul = command.work_as_Matmul()) return prepareMatmul(blas_, *matmul, alignment);
  if (const fb::Conv* conv = command.work_as_Conv()) return prepareConv(dnn_[stream], *conv, alignment);
  return errorf(
      "attention: cuda has no kernel for it whole; compile the model, not a later stage of it, "
      "with --target=cuda");
}

}  // namespace gpuc::cuda
