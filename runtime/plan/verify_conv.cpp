// Convolutions: numbers within bounds, windows that are what the shape says, operands of just these sizes.
#include <cinttypes>

#include "runtime/base/data_type.h"
#include "runtime/plan/verify.h"

namespace gpuc {
namespace {

// Sums and products of two numbers below this stay within 64 bits.
constexpr uint64_t kMostNumber = (uint64_t{1} << 31) - 1;

bool within(uint64_t number, uint64_t least) { return number >= least && number <= kMostNumber; }

Status verifyAxis(const fb::ConvAxis* axis, const char* name) {
  if (!axis) return errorf("conv without %s", name);
  for (uint64_t number : {axis->input(), axis->output(), axis->kernel(), axis->stride(), axis->dilation()})
    if (!within(number, 1)) return errorf("conv: a number of %" PRIu64 " along its %s", number, name);
  if (!within(axis->low(), 0) || !within(axis->high(), 0))
    return errorf("conv: padding %" PRIu64 " and %" PRIu64 " along its %s", axis->low(), axis->high(), name);
  const uint64_t padded = axis->input() + axis->low() + axis->high();
  const uint64_t span = (axis->kernel() - 1) * axis->dilation() + 1;
  if (padded > kMostNumber || span > padded || (padded - span) / axis->stride() + 1 != axis->output())
    return errorf("conv: %" PRIu64 " windows along its %s, which spans %" PRIu64 " of %" PRIu64
                  " padded elements in steps of %" PRIu64,
                  axis->output(), name, span, padded, axis->stride());
  return okStatus();
}

/// A dense tensor of these extents, all of which are at most kMostNumber.
Status verifyTensor(const fb::Conv& conv, const fb::Operand& operand, const char* name, uint64_t outer,
                    uint64_t channels, uint64_t height, uint64_t width) {
  uint64_t bytes = static_cast<uint64_t>(sizeOf(static_cast<DataType>(conv.type())));
  for (uint64_t extent : {outer, channels, height, width})
    if (__builtin_mul_overflow(bytes, extent, &bytes)) bytes = UINT64_MAX;
  if (bytes != operand.size())
    return errorf("conv: %s is %" PRIu64 " bytes, which is not %" PRIu64 "x%" PRIu64 "x%" PRIu64 "x%" PRIu64
                  " elements",
                  name, operand.size(), outer, channels, height, width);
  if (!beginsAtElement(operand, static_cast<DataType>(conv.type())))
    return errorf("conv: %s begins within an element", name);
  return okStatus();
}

/// cuDNN adds a bias to sums of f32, and has relu behind that alone.
Status verifyForCuda(const fb::Conv& conv) {
  if (conv.mask()) return errorf("conv: with a mask, which follows convolutions on the host alone");
  if (conv.bias() && conv.type() == fb::DataType::f64)
    return errorf("conv: with a bias in f64, which cuda adds to sums of f32 alone");
  if (conv.relu() && !conv.bias())
    return errorf("conv: with relu and without a bias, which cuda has no convolution for");
  return okStatus();
}

/// The squares of a filter's gradient, and what takes its tiles.
Status verifyGradient(const fb::Plan& plan, const fb::Conv& conv) {
  if (!conv.squares() && !conv.update()) return okStatus();
  if (conv.kind() != fb::ConvKind::filter_gradient)
    return errorf("conv: with %s, which a filter's gradient has alone, of kind %d",
                  conv.update() ? "an update" : "squares", int(conv.kind()));
  if (conv.squares())
    GPUC_RETURN_IF_ERROR(verifySquares(plan, *conv.squares(), static_cast<DataType>(conv.type()), "conv"));
  if (!conv.update()) return okStatus();
  if (conv.c()) return errorf("conv: with an update, which takes a filter's gradient that is not stored");
  return verifyUpdate(plan, *conv.update(), "conv");
}

Status verifyForHost(const fb::Conv& conv) {
  if (conv.channels_last())
    return errorf("conv: channels lie last, which the host does not compute; compile for cuda");
  return okStatus();
}

}  // namespace

Status verifyConv(const fb::Plan& plan, const fb::Conv& conv) {
  const fb::TargetKind target = plan.target()->kind();
  GPUC_RETURN_IF_ERROR(verifyTf32(conv, "conv", target));
  GPUC_RETURN_IF_ERROR(target == fb::TargetKind::cuda ? verifyForCuda(conv) : verifyForHost(conv));
  if (conv.kind() > fb::ConvKind::MAX || !isFloat(static_cast<DataType>(conv.type())))
    return errorf("conv: unknown kind %d or element type %d", int(conv.kind()), int(conv.type()));
  for (uint64_t number : {conv.batch(), conv.groups(), conv.in_channels(), conv.out_channels()})
    if (!within(number, 1)) return errorf("conv: an extent of %" PRIu64, number);
  if (conv.in_channels() % conv.groups() != 0 || conv.out_channels() % conv.groups() != 0)
    return errorf("conv: %" PRIu64 " groups do not divide %" PRIu64 " and %" PRIu64 " channels",
                  conv.groups(), conv.in_channels(), conv.out_channels());
  GPUC_RETURN_IF_ERROR(verifyAxis(conv.height(), "height"));
  GPUC_RETURN_IF_ERROR(verifyAxis(conv.width(), "width"));
  GPUC_RETURN_IF_ERROR(verifyGradient(plan, conv));

  const bool forward = conv.kind() == fb::ConvKind::forward;
  const bool input_gradient = conv.kind() == fb::ConvKind::input_gradient;
  const fb::Operand* input = forward ? conv.a() : input_gradient ? conv.c() : conv.b();
  const fb::Operand* filter = forward || input_gradient ? conv.b() : conv.c();
  const fb::Operand* output = forward ? conv.c() : conv.a();
  const fb::ConvAxis &height = *conv.height(), &width = *conv.width();
  GPUC_RETURN_IF_ERROR(verifyTensor(conv, *input, "the input", conv.batch(), conv.in_channels(),
                                    height.input(), width.input()));
  if (filter)  // a gradient that is handed on is nowhere
    GPUC_RETURN_IF_ERROR(verifyTensor(conv, *filter, "the filter", conv.out_channels(),
                                      conv.in_channels() / conv.groups(), height.kernel(), width.kernel()));
  GPUC_RETURN_IF_ERROR(verifyTensor(conv, *output, "the output", conv.batch(), conv.out_channels(),
                                    height.output(), width.output()));
  if (!forward && (conv.bias() || conv.relu()))
    return errorf("conv: a bias or a relu behind a gradient, kind %d", int(conv.kind()));
  if (conv.mask() && conv.kind() != fb::ConvKind::input_gradient)
    return errorf("conv: a mask, which follows an input's gradient alone, behind kind %d", int(conv.kind()));
  if (conv.mask())
    GPUC_RETURN_IF_ERROR(verifyTensor(conv, *conv.mask(), "the mask", conv.batch(), conv.in_channels(),
                                      height.input(), width.input()));
  return conv.bias() ? verifyTensor(conv, *conv.bias(), "the bias", conv.out_channels(), 1, 1, 1)
                     : okStatus();
}

}  // namespace gpuc
