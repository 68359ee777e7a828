//===- TraceName.cpp - What traces of gpuc-run call a command ------------------===//

#include "passes/report/TraceName.h"

#include "runtime/plan/command_name.h"

using namespace mlir;

namespace gpuc {

static EpilogueName epilogueOf(plan::ProductOpInterface product) {
  return {product.getBias() != nullptr, product.getRelu(), product.getMask() != nullptr};
}

static std::string nameOf(plan::MatmulOp matmul) {
  return MatmulName{.batch = matmul.getBatch(),
                    .m = matmul.getM(),
                    .n = matmul.getN(),
                    .k = matmul.getK(),
                    .tf32 = matmul.getTf32(),
                    .accumulate = matmul.getAccumulate(),
                    .epilogue = epilogueOf(matmul),
                    .update = matmul.getUpdate().value_or("").str()}
      .text();
}

static std::string nameOf(plan::ConvOp conv) {
  auto extent = [](ArrayRef<int64_t> extents, size_t index) { return static_cast<uint64_t>(extents[index]); };
  return ConvName{.kind = static_cast<int>(conv.getKind()),
                  .in_channels = extent(conv.getInput(), 0),
                  .out_channels = extent(conv.getOutput(), 0),
                  .kernel_height = extent(conv.getFilter(), 2),
                  .kernel_width = extent(conv.getFilter(), 3),
                  .batch = conv.getBatch(),
                  .height = extent(conv.getInput(), 1),
                  .width = extent(conv.getInput(), 2),
                  .channels_last = conv.getChannelsLast(),
                  .tf32 = conv.getTf32(),
                  .epilogue = epilogueOf(conv),
                  .update = conv.getUpdate().value_or("").str()}
      .text();
}

template <typename Op> static std::string nameOf(Op attention, bool gradient) {
  return AttentionName{.gradient = gradient,
                       .batch = attention.getBatch(),
                       .heads = attention.getHeads(),
                       .queries = attention.getQueries(),
                       .keys = attention.getKeys(),
                       .width = attention.getWidth()}
      .text();
}

std::string traceNameOf(plan::CommandOpInterface command) {
  if (auto launch = dyn_cast<plan::LaunchOp>(*command))
    return launch.getKernel().str();
  if (auto matmul = dyn_cast<plan::MatmulOp>(*command))
    return nameOf(matmul);
  if (auto conv = dyn_cast<plan::ConvOp>(*command))
    return nameOf(conv);
  if (auto attention = dyn_cast<plan::AttentionOp>(*command))
    return nameOf(attention, /*gradient=*/false);
  if (auto gradient = dyn_cast<plan::AttentionGradientOp>(*command))
    return nameOf(gradient, /*gradient=*/true);
  if (isa<plan::UploadOp>(*command))
    return "copy h2d " + plan::bufferOf(command.getWrites().front()).getBufferName().str();
  if (isa<plan::DownloadOp>(*command))
    return "copy d2h " + plan::bufferOf(command.getReads().front()).getBufferName().str();
  if (isa<plan::CopyOp>(*command))
    return "copy d2d";
  return isa<plan::LoopOpInterface>(*command) ? "" : command->getName().stripDialect().str();
}

} // namespace gpuc
