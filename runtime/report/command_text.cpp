#include "runtime/report/command_text.h"

#include "runtime/plan/command_name.h"
#include "runtime/plan/operands.h"

namespace gpuc {
namespace {

template <typename Product>
EpilogueName epilogueOf(const Product& product) {
  return {product.bias() != nullptr, product.relu(), product.mask() != nullptr};
}

std::string updateName(const fb::Plan& plan, const fb::Update* update) {
  return update ? std::string(textOf(plan.kernels()->Get(update->kernel())->name())) : "";
}

std::string nameOf(const fb::Plan& plan, const fb::Matmul& matmul) {
  return MatmulName{.batch = matmul.batch(),
                    .m = matmul.m(),
                    .n = matmul.n(),
                    .k = matmul.k(),
                    .tf32 = matmul.tf32(),
                    .accumulate = matmul.accumulate(),
                    .epilogue = epilogueOf(matmul),
                    .update = updateName(plan, matmul.update())}
      .text();
}

std::string nameOf(const fb::Plan& plan, const fb::Conv& conv) {
  return ConvName{.kind = static_cast<int>(conv.kind()),
                  .in_channels = conv.in_channels(),
                  .out_channels = conv.out_channels(),
                  .kernel_height = conv.height()->kernel(),
                  .kernel_width = conv.width()->kernel(),
                  .batch = conv.batch(),
                  .height = conv.height()->input(),
                  .width = conv.width()->input(),
                  .channels_last = conv.channels_last(),
                  .tf32 = conv.tf32(),
                  .epilogue = epilogueOf(conv),
                  .update = updateName(plan, conv.update())}
      .text();
}

std::string nameOf(const fb::Attention& attention) {
  return AttentionName{.gradient = attention.kind() != fb::AttentionKind::forward,
                       .batch = attention.batch(),
                       .heads = attention.heads(),
                       .queries = attention.queries(),
                       .keys = attention.keys(),
                       .width = attention.width()}
      .text();
}

std::string nameOf(const fb::Program& program, const fb::Copy& copy) {
  switch (copy.kind()) {
    case fb::CopyKind::host_to_device:
      return "copy h2d " + std::string(textOf(program.inputs()->Get(copy.port())->name()));
    case fb::CopyKind::device_to_host:
      return "copy d2h " + std::string(textOf(program.outputs()->Get(copy.port())->name()));
    default:
      return "copy d2d";
  }
}

}  // namespace

std::string nameOf(const fb::Plan& plan, const fb::Program& program, const fb::Command& command) {
  if (const fb::Launch* launch = command.work_as_Launch())
    return std::string(textOf(plan.kernels()->Get(launch->kernel())->name()));
  if (const fb::Matmul* matmul = command.work_as_Matmul()) return nameOf(plan, *matmul);
  if (const fb::Conv* conv = command.work_as_Conv()) return nameOf(plan, *conv);
  if (const fb::Attention* attention = command.work_as_Attention()) return nameOf(*attention);
  if (const fb::Copy* copy = command.work_as_Copy()) return nameOf(program, *copy);
  if (const fb::Record* record = command.work_as_Record())
    return "record " + std::string(textOf(program.events()->Get(record->event())));
  if (const fb::Wait* wait = command.work_as_Wait())
    return "wait " + std::string(textOf(program.events()->Get(wait->event()))) +
           (wait->distance() ? " - " + std::to_string(wait->distance()) : "");
  if (const fb::Repeat* repeat = command.work_as_Repeat()) return "repeat " + std::to_string(repeat->count());
  if (const fb::Parallel* parallel = command.work_as_Parallel())
    return (parallel->by_rows() ? "parallel rows " : "parallel ") + std::to_string(parallel->parts());
  return kindOf(command);
}

}  // namespace gpuc
