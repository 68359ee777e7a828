//===- attention_paths_test.cpp - Attention whole, and by its definition -----===//
//
// Random attentions with their gradients, the heads cut out of projections or dense, go to the device twice:
// as they are, which means the library's kernels on the host and generated ones on CUDA, reading and writing
// through strides; and with gpuc-decompose before. Both must agree within 2^12 roundings, and drop the same.
// In bf16 the kernels round probabilities before they multiply them, too.
//
//===----------------------------------------------------------------------===//

#include "test/gradients/DeviceRun.h"
#include "test/gradients/Fixture.h"

#include <random>

using namespace mlir;

namespace gpuc::gradients {
namespace {

/// A function of one attention and its gradient.
class RandomAttention {
public:
  explicit RandomAttention(unsigned seed) : random_(seed) {}

  Case build(const std::string &element) {
    groups_ = upTo(3);
    heads_ = groups_ * upTo(2);
    batch_ = upTo(3), queries_ = upTo(2) == 1 ? upTo(8) : upTo(90), keys_ = upTo(2) == 1 ? upTo(8) : upTo(90);
    bool isWide = upTo(4) == 1;
    width_ = upTo(isWide ? 140 : 12), valueWidth_ = upTo(isWide ? 140 : 12);
    std::string q = heads("q", heads_, queries_, width_), k = heads("k", groups_, keys_, width_),
                v = heads("v", groups_, keys_, valueWidth_), ct = heads("ct", heads_, queries_, valueWidth_);
    std::string result = type({batch_, heads_, queries_, valueWidth_}),
                logs = type({batch_, heads_, queries_}, element == "bf16" ? "f32" : element);
    std::string types = typeOf_[q] + ", " + typeOf_[k] + ", " + typeOf_[v], mask = addMask(), attributes;
    if (upTo(2) == 1)
      attributes += " causal";
    if (upTo(3) == 1)
      attributes += " dropout 0.3 id " + std::to_string(upTo(1000));
    std::string masked = mask.empty() ? "" : " mask " + mask,
                maskType = mask.empty() ? "" : ", " + typeOf_[mask];
    line("%y, %log = gpuc.attention " + q + ", " + k + ", " + v + masked + attributes + " : (" + types +
         maskType + ") -> (" + result + ", " + logs + ")");
    bool isDifferentiable = !mask.empty() && typeOf_[mask].find("i1") == std::string::npos;
    line("%dq, %dk, %dv" + std::string(isDifferentiable ? ", %dm" : "") + " = gpuc.attention_gradient " + ct +
         " of %y, %log query " + q + " key " + k + " value " + v + masked + attributes + " : (" + result +
         ", " + result + ", " + logs + ", " + types + maskType + ") -> (" + types +
         (isDifferentiable ? maskType : "") + ")");
    outputs_.push_back({"%log", bare(logs)});
    giveHeads("%y", heads_, queries_, valueWidth_);
    giveHeads("%dq", heads_, queries_, width_);
    giveHeads("%dk", groups_, keys_, width_);
    giveHeads("%dv", groups_, keys_, valueWidth_);
    if (isDifferentiable && upTo(2) == 1)
      outputs_.push_back({"%dm", bare(typeOf_[mask])});
    return {"gpuc.attention", "random", inputs_, body_, outputs_, Derivatives::none};
  }

private:
  using Shape = std::vector<int64_t>;

  int64_t upTo(int64_t most) { return 1 + static_cast<int64_t>(random_() % static_cast<uint64_t>(most)); }

  static std::string type(const Shape &shape, const std::string &element = "$T") {
    std::string text;
    for (int64_t extent : shape)
      text += std::to_string(extent) + "x";
    return "tensor<" + text + element + ">";
  }
  static std::string bare(const std::string &type) { return type.substr(7, type.size() - 8); }
  void line(const std::string &text) { body_ += text + "\n"; }

  std::string addInput(const std::string &type) {
    inputs_.push_back({bare(type), type.ends_with("xi1>") ? 0.0 : -1.0, 1});
    return "%x" + std::to_string(inputs_.size() - 1);
  }

  /// [batch, heads, rows, width] as an input of its own, or out of a projection [batch, rows, …] with more
  /// beside it.
  std::string heads(const std::string &name, int64_t heads, int64_t rows, int64_t width) {
    std::string final = type({batch_, heads, rows, width});
    int64_t before = upTo(4) - 1, after = upTo(4) - 1, own = heads * width;
    if (upTo(3) == 1) {
      std::string dense = addInput(final);
      typeOf_[dense] = final;
      return dense;
    }
    std::string whole = type({batch_, rows, before + own + after}), cut = type({batch_, rows, own});
    std::string rowsOfHeads = type({batch_, rows, heads, width}), input = addInput(whole), value = "%" + name;
    line(value + "0 = gpuc.slice " + input + " starts [0, 0, " + std::to_string(before) +
         "] limits [-1, -1, " + std::to_string(before + own) + "] strides [1, 1, 1] : (" + whole + ") -> " +
         cut);
    line(value + "1 = gpuc.reshape " + value + "0 : " + cut + " to " + rowsOfHeads);
    line(value + " = gpuc.transpose " + value + "1 permutation [0, 2, 1, 3] : (" + rowsOfHeads + ") -> " +
         final);
    typeOf_[value] = final;
    return value;
  }

  /// Gives a result as it is, or in the order of a projection.
  void giveHeads(const std::string &value, int64_t heads, int64_t rows, int64_t width) {
    std::string from = type({batch_, heads, rows, width}), to = type({batch_, rows, heads, width});
    if (upTo(3) == 1)
      return outputs_.push_back({value, bare(from)});
    line(value + "t = gpuc.transpose " + value + " permutation [0, 2, 1, 3] : (" + from + ") -> " + to);
    outputs_.push_back({value + "t", bare(to)});
  }

  /// "" or a mask of some of the scores' dimensions.
  std::string addMask() {
    if (upTo(3) == 1)
      return "";
    Shape shape;
    for (int64_t extent : {batch_, heads_, queries_, keys_})
      shape.push_back(upTo(2) == 1 ? 1 : extent);
    shape.erase(shape.begin(), shape.begin() + upTo(3) - 1);
    std::string masked = type(shape, upTo(2) == 1 ? "i1" : "$T"), mask = addInput(masked);
    typeOf_[mask] = masked;
    return mask;
  }

  std::mt19937 random_;
  int64_t batch_ = 1, heads_ = 1, groups_ = 1, queries_ = 1, keys_ = 1, width_ = 1, valueWidth_ = 1;
  std::vector<Input> inputs_;
  std::vector<Output> outputs_;
  std::string body_;
  std::map<std::string, std::string> typeOf_;
};

class AttentionPathsTest : public DialectTest, public testing::WithParamInterface<int> {
protected:
  void SetUp() override {
    static const Status found = findTestDevice();
    if (!found.ok())
      GTEST_SKIP() << found.message();
  }

  void compare(const std::string &element, double tolerance) {
    Case described = RandomAttention(static_cast<unsigned>(GetParam())).build(element);
    std::string text = forwardModule(described, element);
    OwningOpRef<ModuleOp> module = parse(text);
    ASSERT_TRUE(module) << text;
    func::FuncOp f = lookup(*module, "f");
    std::vector<Tensor> arguments = makeArguments(described, f);
    std::vector<RankedTensorType> types;
    for (Type type : f.getResultTypes())
      types.push_back(llvm::cast<RankedTensorType>(type));
    runPasses(*module, "gpuc-decompose");
    std::string parts;
    llvm::raw_string_ostream stream(parts);
    for (Operation &op : module->getOps())
      stream << op << "\n";
    auto whole = runOnDevice(text, arguments, types), byParts = runOnDevice(parts, arguments, types);
    ASSERT_TRUE(whole.ok() && byParts.ok()) << whole.message() << byParts.message() << "\n" << text;
    expectClose(*byParts, *whole, tolerance, "definition and kernel");
    if (HasFailure())
      ADD_FAILURE() << text;
  }
};

TEST_P(AttentionPathsTest, F32) { compare("f32", 0x1p-11); }
TEST_P(AttentionPathsTest, BF16) { compare("bf16", 0x1p-5); }
TEST_P(AttentionPathsTest, F64) { compare("f64", 0x1p-40); }

INSTANTIATE_TEST_SUITE_P(Seeds, AttentionPathsTest, testing::Range(0, 60),
                         [](const auto &info) { return std::to_string(info.param); });

} // namespace
} // namespace gpuc::gradients
