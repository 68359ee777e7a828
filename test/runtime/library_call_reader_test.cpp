// What the reader refuses of calls of libraries: convolution and attention. Each case changes one thing of a
// valid plan, and the message must name it.
#include <gtest/gtest.h>

#include <cmath>

#include "runtime/plan/plan.h"
#include "test/runtime/plan_builder.h"

namespace gpuc::test {
namespace {

constexpr uint64_t kHuge = UINT64_MAX - 63;

std::string errorOf(std::string file) {
  Result<Plan> plan = Plan::parse(std::move(file));
  return plan.ok() ? "" : plan.message();
}

/// A change of a command, and what is said of it.
struct CommandCase {
  const char* name;
  void (*change)(fb::PlanT&);
  const char* message;
};

// convolutionsPlan: y = conv(x, w), dx from (dy, w), dw from (dy, x); x is 4x3x9x8, w 5x3x3x3, padding 1.
fb::ConvT& convOf(fb::PlanT& plan, size_t number = 0) {
  return *plan.programs[0]->streams[0]->commands[number]->work.AsConv();
}
template <typename... Arguments>
std::unique_ptr<fb::ConvAxis> axis(
    Arguments... numbers) {  // input, output, kernel, stride, low, high, dilation
  return std::make_unique<fb::ConvAxis>(static_cast<uint64_t>(numbers)...);
}
constexpr uint64_t kMostConvNumber = (uint64_t{1} << 31) - 1;

const CommandCase kConvolutions[] = {
    {"Kind", [](fb::PlanT& p) { convOf(p).kind = static_cast<fb::ConvKind>(3); }, "unknown kind 3"},
    {"Type", [](fb::PlanT& p) { convOf(p).type = fb::DataType::i32; }, "or element type 5"},
    {"NoOperand", [](fb::PlanT& p) { convOf(p).b.reset(); }, "conv without b"},
    {"Tf32OnHost", [](fb::PlanT& p) { convOf(p).tf32 = true; }, "conv: in TF32, which the host does not"},
    {"ChannelsLastOnHost", [](fb::PlanT& p) { convOf(p, 1).channels_last = true; },
     "conv: channels lie last, which the host does not compute; compile for cuda"},
    {"NoAxis", [](fb::PlanT& p) { convOf(p).height.reset(); }, "conv without height"},
    {"BatchZero", [](fb::PlanT& p) { convOf(p).batch = 0; }, "an extent of 0"},
    {"BatchHuge", [](fb::PlanT& p) { convOf(p).batch = kHuge; }, "an extent of"},
    {"Batch", [](fb::PlanT& p) { convOf(p).batch = 5; }, "the input is 3456 bytes, which is not 5x3x9x8"},
    {"GroupsZero", [](fb::PlanT& p) { convOf(p).groups = 0; }, "an extent of 0"},
    {"Groups", [](fb::PlanT& p) { convOf(p).groups = 3; }, "3 groups do not divide 3 and 5 channels"},
    {"Channels", [](fb::PlanT& p) { convOf(p).in_channels = 2; }, "which is not 4x2x9x8"},
    {"Outputs", [](fb::PlanT& p) { convOf(p).out_channels = 6; },
     "the filter is 540 bytes, which is not 6x3x3x3"},
    {"OutputsOfGradient", [](fb::PlanT& p) { convOf(p, 1).out_channels = 6; }, "the filter is 540 bytes"},
    {"KernelZero", [](fb::PlanT& p) { convOf(p).width = axis(8, 8, 0, 1, 1, 1, 1); },
     "a number of 0 along its width"},
    {"StrideZero", [](fb::PlanT& p) { convOf(p).width = axis(8, 8, 3, 0, 1, 1, 1); },
     "a number of 0 along its width"},
    {"DilationZero", [](fb::PlanT& p) { convOf(p).width = axis(8, 8, 3, 1, 1, 1, 0); },
     "a number of 0 along its width"},
    {"KernelHuge", [](fb::PlanT& p) { convOf(p).height = axis(9, 9, kHuge, 1, 1, 1, 1); },
     "along its height"},
    {"PaddingHuge", [](fb::PlanT& p) { convOf(p).height = axis(9, 9, 3, 1, kHuge, 1, 1); }, "padding"},
    {"PaddingThatWraps",
     [](fb::PlanT& p) { convOf(p).height = axis(9, 9, 3, 1, kHuge, uint64_t{1} - kHuge, 1); }, "padding"},
    {"PaddedBeyond",
     [](fb::PlanT& p) { convOf(p).height = axis(9, kMostConvNumber, 11, 1, kMostConvNumber, 1, 1); },
     "windows along its height"},
    {"SpanBeyond",
     [](fb::PlanT& p) { convOf(p).height = axis(9, 1, kMostConvNumber, 1, 1, 1, kMostConvNumber); },
     "windows along its height"},
    {"Windows", [](fb::PlanT& p) { convOf(p).height = axis(9, 8, 3, 1, 1, 1, 1); },
     "8 windows along its height, which spans 3 of 11 padded elements in steps of 1"},
    {"Shifted", [](fb::PlanT& p) { convOf(p).height = axis(10, 10, 3, 1, 1, 1, 1); },
     "which is not 4x3x10x8"},
    {"OutputSize", [](fb::PlanT& p) { convOf(p).c->size -= 4; },
     "the output is 5756 bytes, which is not 4x5x9x8"},
    {"WithinAnElement",
     [](fb::PlanT& p) {
       convOf(p).b->buffer = convOf(p).a->buffer;
       convOf(p).b->offset = 2;
     },
     "the filter begins within an element"},
    {"Bias",
     [](fb::PlanT& p) {
       convOf(p).bias = std::make_unique<fb::OperandT>(*convOf(p).b);
       convOf(p).bias->size = 16;
     },
     "the bias is 16 bytes, which is not 5x1x1x1"},
    {"BiasOfGradient",
     [](fb::PlanT& p) {
       convOf(p, 1).bias = std::make_unique<fb::OperandT>(*convOf(p).b);
       convOf(p, 1).bias->size = 20;
     },
     "a bias or a relu behind a gradient, kind 1"},
    {"ReluOfGradient", [](fb::PlanT& p) { convOf(p, 2).relu = true; },
     "a bias or a relu behind a gradient, kind 2"},
    {"ReluAloneOnCuda",
     [](fb::PlanT& p) {
       p.target->kind = fb::TargetKind::cuda;
       convOf(p).relu = true;
     },
     "with relu and without a bias, which cuda has no convolution for"},
    {"WideBiasOnCuda",
     [](fb::PlanT& p) {
       p.target->kind = fb::TargetKind::cuda;
       convOf(p).type = fb::DataType::f64;
       convOf(p).bias = std::make_unique<fb::OperandT>(*convOf(p).b);
     },
     "with a bias in f64, which cuda adds to sums of f32 alone"},
    {"MaskOnCuda",
     [](fb::PlanT& p) {
       p.target->kind = fb::TargetKind::cuda;
       convOf(p, 1).mask = std::make_unique<fb::OperandT>(*convOf(p, 1).c);
     },
     "with a mask, which follows convolutions on the host alone"},
    {"Mask",
     [](fb::PlanT& p) {
       convOf(p, 1).mask = std::make_unique<fb::OperandT>(*convOf(p, 1).c);
       convOf(p, 1).mask->size -= 4;
     },
     "the mask is"},
    {"MaskOfForward", [](fb::PlanT& p) { convOf(p).mask = std::make_unique<fb::OperandT>(*convOf(p).c); },
     "a mask, which follows an input's gradient alone, behind kind 0"},
    {"SquaresOfForward",
     [](fb::PlanT& p) { convOf(p).squares = std::make_unique<fb::OperandT>(*convOf(p).c); },
     "conv: with squares, which a filter's gradient has alone, of kind 0"},
    {"Squares",
     [](fb::PlanT& p) {
       convOf(p, 2).squares = std::make_unique<fb::OperandT>(*convOf(p, 2).c);
       convOf(p, 2).squares->size -= 2;
     },
     "conv: squares begin or end within an element"},
    {"SquaresOnCuda",
     [](fb::PlanT& p) {
       p.target->kind = fb::TargetKind::cuda;
       convOf(p, 2).squares = std::make_unique<fb::OperandT>(*convOf(p, 2).c);
     },
     "conv: with squares, which products have on the host alone"},
    {"UpdateOfInput", [](fb::PlanT& p) { convOf(p, 1).update = std::make_unique<fb::UpdateT>(); },
     "conv: with an update, which a filter's gradient has alone, of kind 1"},
    {"UpdateAndResult", [](fb::PlanT& p) { convOf(p, 2).update = std::make_unique<fb::UpdateT>(); },
     "conv: with an update, which takes a filter's gradient that is not stored"},
    {"UpdateKernel",
     [](fb::PlanT& p) {
       convOf(p, 2).c.reset();
       convOf(p, 2).update = std::make_unique<fb::UpdateT>();
     },
     "conv: with an update by kernel 0 of 0"},
    {"NeitherResultNorUpdate", [](fb::PlanT& p) { convOf(p, 2).c.reset(); }, "conv without c"},
    {"FilterOfGradient", [](fb::PlanT& p) { convOf(p, 2).c->offset = 4; }, "leaves buffer 'dw'"},
    {"Workspace", [](fb::PlanT& p) { convOf(p, 2).workspace->size = 1 << 20; }, "leaves buffer 'workspace'"},
    {"Location", [](fb::PlanT& p) { convOf(p).batch = 0; }, "('conv1')"},
};

class ConvVerifier : public testing::TestWithParam<CommandCase> {};

TEST_P(ConvVerifier, NamesWhatIsWrong) {
  PlanBuilder builder = convolutionsPlan();
  EXPECT_EQ(errorOf(builder.seal()), "");
  GetParam().change(builder.plan);
  std::string error = errorOf(builder.seal());
  EXPECT_NE(error.find(GetParam().message), std::string::npos) << error;
}

INSTANTIATE_TEST_SUITE_P(Convolutions, ConvVerifier, testing::ValuesIn(kConvolutions),
                         [](const auto& info) { return std::string(info.param.name); });

// attentionPlan: q 2x4x5x4, k 2x2x80x4, v 2x2x80x3, a mask of 5x80 that is added, dropout; then the gradient.
fb::AttentionT& attentionOf(fb::PlanT& plan, size_t number = 0) {
  return *plan.programs[0]->streams[0]->commands[number]->work.AsAttention();
}
template <typename... Arguments>
std::unique_ptr<fb::AttentionLayout> lay(Arguments... strides) {  // batch, head, row
  return std::make_unique<fb::AttentionLayout>(static_cast<uint64_t>(strides)...);
}
template <typename... Arguments>
std::unique_ptr<fb::MaskStrides> along(Arguments... strides) {  // batch, heads, queries, keys
  return std::make_unique<fb::MaskStrides>(static_cast<uint64_t>(strides)...);
}

const CommandCase kAttentions[] = {
    {"Kind", [](fb::PlanT& p) { attentionOf(p).kind = static_cast<fb::AttentionKind>(2); }, "unknown kind 2"},
    {"Mask", [](fb::PlanT& p) { attentionOf(p).mask_kind = static_cast<fb::AttentionMask>(3); }, "mask 3"},
    {"Type", [](fb::PlanT& p) { attentionOf(p).type = fb::DataType::i32; }, "or element type 5"},
    {"BatchZero", [](fb::PlanT& p) { attentionOf(p).batch = 0; }, "an extent of 0"},
    {"HeadsZero", [](fb::PlanT& p) { attentionOf(p).heads = 0; }, "an extent of 0"},
    {"GroupsZero", [](fb::PlanT& p) { attentionOf(p).groups = 0; }, "an extent of 0"},
    {"QueriesZero", [](fb::PlanT& p) { attentionOf(p).queries = 0; }, "an extent of 0"},
    {"KeysZero", [](fb::PlanT& p) { attentionOf(p).keys = 0; }, "an extent of 0"},
    {"WidthZero", [](fb::PlanT& p) { attentionOf(p).width = 0; }, "an extent of 0"},
    {"ValueWidthZero", [](fb::PlanT& p) { attentionOf(p).value_width = 0; }, "an extent of 0"},
    {"KeysBeyond", [](fb::PlanT& p) { attentionOf(p).keys = uint64_t{1} << 31; }, "an extent of 2147483648"},
    {"KeysHuge", [](fb::PlanT& p) { attentionOf(p).keys = kHuge; }, "an extent of"},
    {"Groups", [](fb::PlanT& p) { attentionOf(p).groups = 3; }, "3 groups do not divide 4 heads"},
    {"Scale", [](fb::PlanT& p) { attentionOf(p).scale = NAN; }, "a scale of nan"},
    {"ScaleInfinite", [](fb::PlanT& p) { attentionOf(p).scale = INFINITY; }, "a scale of inf"},
    {"Wider", [](fb::PlanT& p) { attentionOf(p).type = fb::DataType::f64; },
     "query is 640 bytes, its layout spans 160"},
    {"Queries", [](fb::PlanT& p) { attentionOf(p).queries = 4; }, "query is 640 bytes, its layout spans 156"},
    {"Width", [](fb::PlanT& p) { attentionOf(p).width = 3; }, "query is 640 bytes, its layout spans 159"},
    {"ValueWidth", [](fb::PlanT& p) { attentionOf(p).value_width = 2; }, "value is 3840 bytes"},
    {"NoOperand", [](fb::PlanT& p) { attentionOf(p).key.reset(); }, "attention without key"},
    {"WithinAnElement",
     [](fb::PlanT& p) {
       attentionOf(p).query->buffer = attentionOf(p).key->buffer;
       attentionOf(p).query->offset = 2;
     },
     "query begins within an element"},
    {"MaskWithinAnElement",
     [](fb::PlanT& p) {
       attentionOf(p).mask->buffer = attentionOf(p).key->buffer;
       attentionOf(p).mask->offset = 2;
     },
     "mask begins within an element"},
    {"StepWithinAnElement",
     [](fb::PlanT& p) {
       attentionOf(p).step->buffer = attentionOf(p).key->buffer;
       attentionOf(p).step->offset = 4;
       attentionOf(p).step->size = 8;
     },
     "seed or step begins within an element"},
    {"NoLayout", [](fb::PlanT& p) { attentionOf(p).result_layout.reset(); }, "attention without result"},
    {"NoLogarithms", [](fb::PlanT& p) { attentionOf(p).log_sum_exp.reset(); },
     "attention without log_sum_exp"},
    {"NoCotangent", [](fb::PlanT& p) { attentionOf(p, 1).cotangent.reset(); }, "attention without cotangent"},
    {"NoQueryCotangent", [](fb::PlanT& p) { attentionOf(p, 1).query_cotangent.reset(); },
     "attention without query's cotangent"},
    {"NoKeyCotangent", [](fb::PlanT& p) { attentionOf(p, 1).key_cotangent.reset(); },
     "attention without key's cotangent"},
    {"Outside", [](fb::PlanT& p) { attentionOf(p, 1).key_cotangent->offset = 4; }, "leaves buffer 'dk'"},
    {"RowsThatMeet", [](fb::PlanT& p) { attentionOf(p).query_layout = lay(80, 20, 3); },
     "query has elements that meet, with strides 80, 20 and 3"},
    {"OneRowThatWouldMeet",
     [](fb::PlanT& p) {
       attentionOf(p).queries = 1;
       attentionOf(p).query_layout = lay(80, 20, 3);
     },
     "query has elements that meet, with strides 80, 20 and 3"},
    {"HeadsThatMeet", [](fb::PlanT& p) { attentionOf(p).query_layout = lay(80, 16, 4); },
     "elements that meet"},
    {"StrideHuge", [](fb::PlanT& p) { attentionOf(p).query_layout = lay(kHuge, 20, 4); },
     "elements that meet"},
    // 3 of it are 2^64 + 119: with the 21 and 20 before them 160, as they should be, were it not for the
    // 2^64.
    {"StrideThatWraps",
     [](fb::PlanT& p) { attentionOf(p).query_layout = lay(21, (~uint64_t{0} - 2) / 3 + 41, 4); },
     "query has elements that meet"},
    {"SumThatWraps",
     [](fb::PlanT& p) { attentionOf(p).key_layout = lay(uint64_t{1} << 63, (uint64_t{1} << 63) + 960, 4); },
     "key has elements that meet"},
    // 2^62 + 160 elements of 4 bytes.
    {"BytesThatWrap",
     [](fb::PlanT& p) { attentionOf(p).query_layout = lay((uint64_t{1} << 62) + 80, 20, 4); },
     "query is 640 bytes, its layout spans 4611686018427388064"},
    {"RowHuge", [](fb::PlanT& p) { attentionOf(p).value_layout = lay(480, 240, kHuge); },
     "rows of value are"},
    {"LayoutOfGradient", [](fb::PlanT& p) { attentionOf(p, 1).value_cotangent_layout = lay(480, 240, 4); },
     "value's cotangent has elements that meet"},
    {"NoMask", [](fb::PlanT& p) { attentionOf(p).mask.reset(); }, "come together or not at all"},
    {"MaskWithoutKind", [](fb::PlanT& p) { attentionOf(p).mask_kind = fb::AttentionMask::none; },
     "come together or not at all"},
    {"NoMaskStrides", [](fb::PlanT& p) { attentionOf(p).mask_strides.reset(); },
     "come together or not at all"},
    {"MaskSize", [](fb::PlanT& p) { attentionOf(p).mask_strides = along(0, 400, 80, 1); },
     "mask is 1600 bytes, its layout spans 1600 elements"},
    {"MaskOfBatch", [](fb::PlanT& p) { attentionOf(p).mask_strides = along(400, 0, 80, 1); },
     "mask is 1600 bytes, its layout spans 800 elements"},
    {"MaskThatIsNarrow",  // half of the batch at twice the width: all others are as long
     [](fb::PlanT& p) {
       attentionOf(p).type = fb::DataType::f64;
       attentionOf(p).batch = 1;
     },
     "mask is 1600 bytes, its layout spans 400 elements"},
    {"MaskFlags", [](fb::PlanT& p) { attentionOf(p).mask_kind = fb::AttentionMask::flags; },
     "mask is 1600 bytes, its layout spans 400 elements"},
    {"MaskThatMeets", [](fb::PlanT& p) { attentionOf(p).mask_strides = along(0, 0, 79, 1); },
     "the mask has elements that meet"},
    {"MaskCotangentOfForward",
     [](fb::PlanT& p) {
       attentionOf(p).mask_cotangent = std::make_unique<fb::OperandT>(*attentionOf(p, 1).mask_cotangent);
     },
     "no mask to differentiate by"},
    {"MaskCotangentOfFlags", [](fb::PlanT& p) { attentionOf(p, 1).mask_kind = fb::AttentionMask::flags; },
     "no mask to differentiate by"},
    {"MaskCotangentSize", [](fb::PlanT& p) { attentionOf(p, 1).mask_cotangent->size -= 4; },
     "mask's cotangent is 1596 bytes"},
    {"Dropout", [](fb::PlanT& p) { attentionOf(p).dropout = 1; }, "dropout 1 with id 7"},
    {"DropoutBelow", [](fb::PlanT& p) { attentionOf(p).dropout = -0.5; }, "dropout -0.5 with id 7"},
    {"DropoutNan", [](fb::PlanT& p) { attentionOf(p).dropout = NAN; }, "dropout nan"},
    {"Id", [](fb::PlanT& p) { attentionOf(p).id = kHuge; }, "dropout 0.25 with id"},
    {"NoSeed", [](fb::PlanT& p) { attentionOf(p).seed.reset(); }, "dropout, seed and step come together"},
    {"NoStep", [](fb::PlanT& p) { attentionOf(p).step.reset(); }, "dropout, seed and step come together"},
    {"SeedAlone",
     [](fb::PlanT& p) {
       attentionOf(p).dropout = 0;
       attentionOf(p).step.reset();
     },
     "dropout, seed and step come together"},
    {"StepAlone",
     [](fb::PlanT& p) {
       attentionOf(p).dropout = 0;
       attentionOf(p).seed.reset();
     },
     "dropout, seed and step come together"},
    {"Seed",
     [](fb::PlanT& p) { attentionOf(p).seed = std::make_unique<fb::OperandT>(*attentionOf(p).query); },
     "seed and step are 640 and 8 bytes"},
    {"Step",
     [](fb::PlanT& p) { attentionOf(p).step = std::make_unique<fb::OperandT>(*attentionOf(p).query); },
     "seed and step are 8 and 640 bytes"},
    {"Workspace", [](fb::PlanT& p) { attentionOf(p, 1).workspace->size = 1 << 20; },
     "leaves buffer 'workspace'"},
    {"Location", [](fb::PlanT& p) { attentionOf(p).batch = 0; }, "('attention1')"},
};

class AttentionVerifier : public testing::TestWithParam<CommandCase> {};

TEST_P(AttentionVerifier, NamesWhatIsWrong) {
  PlanBuilder builder = attentionPlan();
  EXPECT_EQ(errorOf(builder.seal()), "");
  GetParam().change(builder.plan);
  std::string error = errorOf(builder.seal());
  EXPECT_NE(error.find(GetParam().message), std::string::npos) << error;
}

INSTANTIATE_TEST_SUITE_P(Attentions, AttentionVerifier, testing::ValuesIn(kAttentions),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace gpuc::test
