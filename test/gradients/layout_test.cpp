//===- layout_test.cpp - Random networks with their channels last ------------===//
//
// For each seed: a small network of convolutions and what may stand between them, interpreted as it is and
// with every image turned around, whether or not that pays; and again after fusion, which shows that what
// came of it can be kernels. The interpreter computes in f64, so that only the order of sums may differ.
// Beside them products that get zeros around them.
//
//===----------------------------------------------------------------------===//

#include "passes/layout/conv/Channels.h"
#include "test/gradients/Fixture.h"

#include "mlir/IR/Verifier.h"

#include <random>

using namespace mlir;

namespace gpuc::gradients {
namespace {

using Shape = std::vector<int64_t>;

struct Node {
  std::string name;
  Shape shape;
};

std::string textOf(const Shape &numbers, const char *between) {
  std::string text;
  for (int64_t number : numbers)
    text += (text.empty() ? "" : between) + std::to_string(number);
  return text;
}

std::string typeOf(const Shape &shape, const std::string &element = "$T") {
  return (shape.empty() ? "" : textOf(shape, "x") + "x") + element;
}

class Network {
public:
  explicit Network(uint64_t seed) : random_(seed) {
    case_.op = "random.network";
    case_.name = "seed_" + std::to_string(seed);
  }

  Case build() {
    image_ = input({2, 8 * (1 + below(2)), 4 + below(4), 4 + below(4)});
    convolve();
    for (int64_t ops = 4 + below(10); ops > 0; --ops)
      (this->*steps[static_cast<size_t>(below(std::size(steps)))])();
    convolve();
    output(image_);
    return case_;
  }

private:
  int64_t below(int64_t bound) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(bound)); }

  Node input(const Shape &shape) {
    Node node{"%x" + std::to_string(case_.inputs.size()), shape};
    case_.inputs.push_back({typeOf(shape)});
    return node;
  }
  void output(const Node &node, const std::string &element = "$T") {
    case_.outputs.push_back({node.name, typeOf(node.shape, element)});
  }
  /// %n = gpuc.<text> : (<operands' types>) -> <type of the shape>
  Node emit(const std::string &text, const std::vector<Node> &operands, const Shape &shape,
            const std::string &element = "$T") {
    Node node{"%n" + std::to_string(count_++), shape};
    std::string types;
    for (const Node &operand : operands)
      types += (types.empty() ? "" : ", ") + tensor(typeOf(operand.shape));
    case_.body +=
        node.name + " = gpuc." + text + " : (" + types + ") -> " + tensor(typeOf(shape, element)) + "\n";
    return node;
  }
  Node same(const std::string &text) {
    Node node{"%n" + std::to_string(count_++), image_.shape};
    case_.body += node.name + " = gpuc." + text + " : " + tensor(typeOf(image_.shape)) + "\n";
    return node;
  }
  static std::string tensor(const std::string &type) { return "tensor<" + type + ">"; }

  int64_t channels() const { return image_.shape[1]; }
  static std::string around() { return " padding [1, 1, 1, 1]"; }

  void convolve() {
    const int64_t groups = 1 + below(2), stride = 1 + below(2), outputs = 8 * (1 + below(2));
    Node filter = input({outputs, channels() / groups, 3, 3});
    Shape shape = image_.shape;
    shape[1] = outputs;
    shape[2] = (shape[2] - 1) / stride + 1;
    image_ = emit("conv2d " + image_.name + ", " + filter.name + " strides [" + std::to_string(stride) +
                      ", 1]" + around() + " groups " + std::to_string(groups),
                  {image_, filter}, shape);
  }
  void convolveBack() {
    Node filter = input({channels(), 8, 3, 3});
    Shape shape = image_.shape;
    shape[1] = 8;
    image_ =
        emit("conv2d_input_gradient " + image_.name + ", " + filter.name + around(), {image_, filter}, shape);
  }
  void differentiateFilter() {
    Node other = same("tanh " + image_.name);
    output(emit("conv2d_filter_gradient " + image_.name + ", " + other.name + around(), {image_, other},
                {channels(), channels(), 3, 3}));
  }
  void activate() { image_ = same("relu " + image_.name); }
  void addResidual() {
    Node before = image_;
    convolve();
    if (before.shape == image_.shape)
      image_ = same("add " + image_.name + ", " + before.name);
  }
  void normalize() {
    Node sum = emit("sum " + image_.name + " dims [0, 2, 3]", {image_}, {channels()});
    image_ = same("sub " + image_.name + ", " + repeated(sum, {1}).name);
  }
  /// What has channels, rows and columns, and no images: its dimensions turn around, too.
  void addTable() {
    Node table = input({channels(), image_.shape[2], image_.shape[3]});
    image_ = same("add " + image_.name + ", " + repeated(table, {1, 2, 3}).name);
  }
  Node repeated(const Node &node, const Shape &dims) {
    Node result{"%n" + std::to_string(count_++), image_.shape};
    case_.body += result.name + " = gpuc.broadcast " + node.name + " dims [" + textOf(dims, ", ") +
                  "] : " + tensor(typeOf(node.shape)) + " to " + tensor(typeOf(image_.shape)) + "\n";
    return result;
  }
  void countAlong() {
    Node number = same("iota dim " + std::to_string(below(4)));
    image_ = same("add " + image_.name + ", " + number.name);
  }
  void fill() {
    Node number = same("constant 0.5");
    image_ = same("mul " + image_.name + ", " + number.name);
  }
  void reduce() {
    Shape dims, kept;
    for (int64_t dim = 0; dim < 4; ++dim)
      (below(2) ? dims : kept).push_back(dim);
    for (int64_t &dim : kept)
      dim = image_.shape[static_cast<size_t>(dim)];
    const char *op = below(2) ? "sum " : "reduce_max ";
    output(emit(op + image_.name + " dims [" + textOf(dims, ", ") + "]", {image_}, kept));
  }
  void findLargest() {
    const int64_t dim = below(4);
    Shape kept = image_.shape;
    kept.erase(kept.begin() + dim);
    output(emit("argmax " + image_.name + " dim " + std::to_string(dim), {image_}, kept, "i64"), "i64");
  }
  void pool() {
    Shape shape = {image_.shape[0], channels(), image_.shape[2] / 2 + 1, image_.shape[3]};
    const std::string windows = " window [2, 3] strides [2, 1] padding [1, 1, 1, 1]";
    shape[2] = (image_.shape[2] + 2 - 2) / 2 + 1;
    const std::string name = "%n" + std::to_string(count_++), pooled = tensor(typeOf(shape)),
                      indices = tensor(typeOf(shape, "i64")), whole = tensor(typeOf(image_.shape));
    case_.body += name + ", " + name + "_i = gpuc.max_pool2d " + image_.name + windows + " : (" + whole +
                  ") -> (" + pooled + ", " + indices + ")\n" + name + "_g = gpuc.max_pool2d_gradient " +
                  name + ", " + name + "_i" + windows + " : (" + pooled + ", " + indices + ") -> " + whole +
                  "\n";
    image_.name = name + "_g";
    if (below(2))
      image_ = {name, shape};
  }
  void average() {
    const std::string windows =
        " window [3, 2] padding [1, 1, 1, 0]" + std::string(below(2) ? " exclude_padding" : "");
    Node pooled = emit("avg_pool2d " + image_.name + windows, {image_}, image_.shape);
    image_ = emit("avg_pool2d_gradient " + pooled.name + windows, {pooled}, image_.shape);
  }
  void cut() {
    Shape shape = image_.shape;
    if (shape[2] < 3 || shape[3] < 3)
      return;
    --shape[2];
    shape[3] = (shape[3] + 1) / 2;
    image_ = emit("slice " + image_.name + " starts [0, 0, 1, 0] limits [2, " +
                      textOf({channels(), image_.shape[2], image_.shape[3]}, ", ") + "] strides [1, 1, 1, 2]",
                  {image_}, shape);
    image_.shape = shape;
  }
  void pad() {
    Shape shape = image_.shape;
    shape[2] += 1;
    shape[3] += shape[3] - 1 + 2;
    image_ = emit("pad " + image_.name + " low [0, 0, 1, 0] high [0, 0, 0, 2] interior [0, 0, 0, 1]",
                  {image_}, shape);
  }
  void turn() {
    Node reversed{"%n" + std::to_string(count_++), image_.shape};
    case_.body += reversed.name + " = gpuc.reverse " + image_.name +
                  " dims [1, 2] : " + tensor(typeOf(image_.shape)) + "\n";
    Shape shape = image_.shape;
    shape[1] *= 2;
    image_ = emit("concat " + image_.name + ", " + reversed.name + " dim 1", {image_, reversed}, shape);
  }
  void flatten() {
    Node flat{"%n" + std::to_string(count_++),
              {image_.shape[0], channels() * image_.shape[2] * image_.shape[3]}};
    case_.body += flat.name + " = gpuc.reshape " + image_.name + " : " + tensor(typeOf(image_.shape)) +
                  " to " + tensor(typeOf(flat.shape)) + "\n";
    output(flat);
  }

  using Step = void (Network::*)();
  static constexpr Step steps[] = {&Network::convolve, &Network::convolveBack, &Network::differentiateFilter,
                                   &Network::activate, &Network::addResidual,  &Network::normalize,
                                   &Network::addTable, &Network::countAlong,   &Network::fill,
                                   &Network::reduce,   &Network::findLargest,  &Network::pool,
                                   &Network::average,  &Network::cut,          &Network::pad,
                                   &Network::turn,     &Network::flatten};

  std::mt19937_64 random_;
  Case case_;
  Node image_;
  int count_ = 0;
};

int64_t channelsLastOps(ModuleOp module) {
  int64_t count = 0;
  module.walk([&](Operation *op) { count += op->hasAttr("channels_last"); });
  return count;
}

class LayoutTest : public DialectTest, public testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(Seeds, LayoutTest, testing::Range(0, 60));

TEST_P(LayoutTest, KeepsWhatIsComputed) {
  const Case network = Network(static_cast<uint64_t>(GetParam())).build();
  const std::string text = forwardModule(network, "bf16");
  SCOPED_TRACE(text);
  OwningOpRef<ModuleOp> before = parse(text), after = parse(text);
  ASSERT_TRUE(before && after);
  const std::vector<Tensor> arguments = makeArguments(network, lookup(*before, "f")),
                            expected = interpret(*before, "f", arguments);
  Block &block = lookup(*after, "f").getBody().front();
  transposeToChannelsLast(block, findLayoutGroups(block));
  ASSERT_TRUE(succeeded(verify(*after)));
  ASSERT_GE(channelsLastOps(*after), 2); // the first convolution and the last
  expectClose(expected, interpret(*after, "f", arguments), 1e-12, "channels last");
  for (const char *passes : {"canonicalize,cse", "gpuc-fuse{target=cuda:sm_90}"}) {
    runPasses(*after, passes);
    expectClose(expected, interpret(*after, "f", arguments), 1e-12, passes);
  }

  // And back again.
  OwningOpRef<ModuleOp> back = parse(text);
  Block &backAgain = lookup(*back, "f").getBody().front();
  transposeToChannelsLast(backAgain, findLayoutGroups(backAgain));
  transposeToChannelsFirst(backAgain, /*poolings=*/true);
  EXPECT_EQ(channelsLastOps(*back), 0);
  expectClose(expected, interpret(*back, "f", arguments), 1e-12, "channels first again");
}

class NormTest : public DialectTest {};

/// A batch norm and a relu between two convolutions, and all gradients: what gpuc-fuse makes of a norm whose
/// sums are cut in two.
TEST_F(NormTest, KeepsWhatANormAndItsGradientCompute) {
  constexpr const char *text = R"(
    func.func private @loss(%x: tensor<3x8x6x5xbf16>, %f: tensor<16x8x3x3xbf16>, %w: tensor<16xbf16>, %b: tensor<16xbf16>, %g: tensor<8x16x3x3xbf16>) -> (tensor<f32>, tensor<16xf32>, tensor<16xf32>) {
      %zero = gpuc.constant 0.0 : tensor<16xf32>
      %0 = gpuc.conv2d %x, %f strides [1, 1] padding [1, 1, 1, 1] dilation [1, 1] groups 1 : (tensor<3x8x6x5xbf16>, tensor<16x8x3x3xbf16>) -> tensor<3x16x6x5xbf16>
      %y:5 = gpuc.batch_norm %0 running %zero, %zero weight %w bias %b : (tensor<3x16x6x5xbf16>, tensor<16xf32>, tensor<16xf32>, tensor<16xbf16>, tensor<16xbf16>) -> (tensor<3x16x6x5xbf16>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>)
      %1 = gpuc.relu %y#0 : tensor<3x16x6x5xbf16>
      %2 = gpuc.conv2d %1, %g strides [1, 1] padding [1, 1, 1, 1] dilation [1, 1] groups 1 : (tensor<3x16x6x5xbf16>, tensor<8x16x3x3xbf16>) -> tensor<3x8x6x5xbf16>
      %3 = gpuc.mul %2, %2 : tensor<3x8x6x5xbf16>
      %4 = gpuc.cast %3 : tensor<3x8x6x5xbf16> to tensor<3x8x6x5xf32>
      %5 = gpuc.sum %4 dims [0, 1, 2, 3] : (tensor<3x8x6x5xf32>) -> tensor<f32>
      return %5, %y#1, %y#2 : tensor<f32>, tensor<16xf32>, tensor<16xf32>
    }
    func.func @f(%x: tensor<3x8x6x5xbf16>, %f: tensor<16x8x3x3xbf16>, %w: tensor<16xbf16>, %b: tensor<16xbf16>, %g: tensor<8x16x3x3xbf16>)
        -> (tensor<f32>, tensor<16xf32>, tensor<16xf32>, tensor<3x8x6x5xbf16>, tensor<16x8x3x3xbf16>, tensor<16xbf16>, tensor<16xbf16>, tensor<8x16x3x3xbf16>) {
      %y:8 = gpuc.gradient @loss(%x, %f, %w, %b, %g) wrt arguments [0, 1, 2, 3, 4] : (tensor<3x8x6x5xbf16>, tensor<16x8x3x3xbf16>, tensor<16xbf16>, tensor<16xbf16>, tensor<8x16x3x3xbf16>)
        -> (tensor<f32>, tensor<16xf32>, tensor<16xf32>, tensor<3x8x6x5xbf16>, tensor<16x8x3x3xbf16>, tensor<16xbf16>, tensor<16xbf16>, tensor<8x16x3x3xbf16>)
      return %y#0, %y#1, %y#2, %y#3, %y#4, %y#5, %y#6, %y#7 : tensor<f32>, tensor<16xf32>, tensor<16xf32>, tensor<3x8x6x5xbf16>, tensor<16x8x3x3xbf16>, tensor<16xbf16>, tensor<16xbf16>, tensor<8x16x3x3xbf16>
    })";
  OwningOpRef<ModuleOp> module = parse(text);
  ASSERT_TRUE(module);
  runPasses(*module, "gpuc-autodiff,gpuc-decompose,canonicalize,cse");
  func::FuncOp f = lookup(*module, "f");
  std::mt19937 random(1);
  std::vector<Tensor> arguments;
  for (Type type : f.getArgumentTypes()) {
    arguments.emplace_back(cast<RankedTensorType>(type));
    for (reference::Element &element : arguments.back().elements)
      element.real = std::normal_distribution<double>(0.5)(random);
  }
  const std::vector<Tensor> expected = interpret(*module, "f", arguments);
  Block &block = f.getBody().front();
  transposeToChannelsLast(block, findLayoutGroups(block));
  runPasses(*module, "canonicalize,cse");
  expectClose(expected, interpret(*module, "f", arguments), 1e-12, "channels last");
  runPasses(*module, "gpuc-fuse{target=cuda:sm_90}");
  expectClose(expected, interpret(*module, "f", arguments), 1e-10, "fused");
}

class PaddingTest : public DialectTest {};

/// Rows of 329, 331 and 333 elements, as left and right operands, transposed and not, and as results.
TEST_F(PaddingTest, KeepsWhatIsComputed) {
  const Case products = {"random.products",
                         "odd",
                         {{"333x329x$T"}, {"331x329x$T"}},
                         R"(%a = gpuc.relu %x0 : tensor<333x329x$T>
%b = gpuc.relu %x1 : tensor<331x329x$T>
%y = gpuc.matmul %a, transpose %b : (tensor<333x329x$T>, tensor<331x329x$T>) -> tensor<333x331x$T>
%e = gpuc.abs %y : tensor<333x331x$T>
%z = gpuc.matmul transpose %e, %a : (tensor<333x331x$T>, tensor<333x329x$T>) -> tensor<331x329x$T>
%r = gpuc.neg %z : tensor<331x329x$T>)",
                         {{"%r", "331x329x$T"}}};
  const std::string text = forwardModule(products, "bf16");
  OwningOpRef<ModuleOp> before = parse(text), after = parse(text);
  ASSERT_TRUE(before && after);
  const std::vector<Tensor> arguments = makeArguments(products, lookup(*before, "f"));
  runPasses(*after, "gpuc-layout{target=cuda:sm_90},canonicalize,cse");
  int64_t pads = 0, wide = 0;
  after->walk([&](Operation *op) {
    pads += isa<ir::PadOp>(op);
    wide += isa<ir::MatmulOp>(op) && cast<ir::MatmulOp>(op).getType().getDimSize(1) == 336;
  });
  EXPECT_EQ(pads, 3); // of a, b and e
  EXPECT_EQ(wide, 2);
  expectClose(interpret(*before, "f", arguments), interpret(*after, "f", arguments), 1e-12, "padded");
}

} // namespace
} // namespace gpuc::gradients
