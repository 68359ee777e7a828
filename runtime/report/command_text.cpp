#include "runtime/report/command_text.h"

#include <utility>

#include "runtime/plan/operands.h"

namespace gpuc {
namespace {

/// What follows each element: " + bias, relu", or ", masked".
template <typename Product>
std::string epilogueOf(const Product& product) {
  return std::string(product.bias() ? " + bias" : "") + (product.relu() ? ", relu" : "") +
         (product.mask() ? ", masked" : "");
}

std::string nameOf(const fb::Matmul& matmul) {
  std::string name = "matmul ";
  if (matmul.batch() != 1) name += std::to_string(matmul.batch()) + "x";
  name += std::to_string(matmul.m()) + "x" + std::to_string(matmul.n()) + "x" + std::to_string(matmul.k());
  if (matmul.tf32()) name += " tf32";
  if (matmul.accumulate()) name += " added";
  return name + epilogueOf(matmul);
}

/// "conv 64→128 3x3 on 32x56x56": channels, kernel, images of the input.
std::string nameOf(const fb::Conv& conv) {
  constexpr const char* kKinds[] = {"conv ", "conv input gradient ", "conv filter gradient "};
  auto product = [](std::initializer_list<uint64_t> extents) {
    std::string text;
    for (uint64_t extent : extents) text += (text.empty() ? "" : "x") + std::to_string(extent);
    return text;
  };
  return kKinds[static_cast<size_t>(conv.kind())] + std::to_string(conv.in_channels()) + "→" +
         std::to_string(conv.out_channels()) + " " +
         product({conv.height()->kernel(), conv.width()->kernel()}) + " on " +
         product({conv.batch(), conv.height()->input(), conv.width()->input()}) +
         (conv.channels_last() ? " channels last" : "") + (conv.tf32() ? " tf32" : "") + epilogueOf(conv);
}

/// "attention gradient 12x4x64x64x32": batch, heads, queries, keys, elements of a key.
std::string nameOf(const fb::Attention& attention) {
  std::string name = attention.kind() == fb::AttentionKind::forward ? "attention" : "attention gradient";
  const char* separator = " ";
  for (uint64_t extent :
       {attention.batch(), attention.heads(), attention.queries(), attention.keys(), attention.width()})
    name += std::exchange(separator, "x") + std::to_string(extent);
  return name;
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
  if (const fb::Matmul* matmul = command.work_as_Matmul()) return nameOf(*matmul);
  if (const fb::Conv* conv = command.work_as_Conv()) return nameOf(*conv);
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
