// ONNX graphs: bytes spell a graph of known ops with any inputs, attributes and shapes; its import gives a
// module or problems. Mutated files (onnx_fuzz.cpp) seldom get past protobuf, these always do.
#include <cstdlib>

#include "frontend/onnx/Onnx.h"
#include "frontend/onnx/ops/OpTable.h"
#include "frontend/onnx/reader/HostTensor.h"
#include "frontend/onnx/reader/Upgrade.h"
#include "test/fuzz/fuzz_check.h"

namespace {

using gpuc::DataType;
namespace onnx = gpuc::onnx;

/// The input as a list of choices; zeros once it is used up.
class Choices {
 public:
  Choices(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  bool empty() const { return at_ >= size_; }
  uint8_t byte() { return empty() ? 0 : data_[at_++]; }
  size_t below(size_t limit) { return byte() % limit; }
  /// Mostly small, now and then one that overflows.
  int64_t integer() {
    static constexpr int64_t kEdges[] = {INT64_MIN,        INT64_MAX, INT32_MAX, -INT32_MAX,
                                         int64_t{1} << 40, 1000,      -1000};
    uint8_t value = byte();
    return value < 245 ? value % 9 - 3 : kEdges[value % std::size(kEdges)];
  }

 private:
  const uint8_t* data_;
  size_t size_, at_ = 0;
};

std::vector<int64_t> integers(Choices& choices, size_t most) {
  std::vector<int64_t> list(choices.below(most + 1));
  for (int64_t& element : list) element = choices.integer();
  return list;
}

onnx::HostTensorPtr tensor(Choices& choices) {
  static constexpr DataType kTypes[] = {DataType::f32, DataType::i64, DataType::i64, DataType::i1,
                                        DataType::i32};
  std::vector<int64_t> shape(choices.below(3));
  int64_t count = 1;
  for (int64_t& extent : shape) count *= extent = static_cast<int64_t>(choices.below(4));
  std::vector<int64_t> elements(count);
  for (int64_t& element : elements) element = choices.integer();
  return onnx::fromIntegers(kTypes[choices.below(std::size(kTypes))], shape, elements);
}

onnx::ValueInfo input(Choices& choices, const std::string& name) {
  static constexpr DataType kTypes[] = {DataType::f32, DataType::f32, DataType::i64,
                                        DataType::i1,  DataType::f64, DataType::ui8};
  onnx::ValueInfo made;
  made.name = name;
  made.type = kTypes[choices.below(std::size(kTypes))];
  made.shape.emplace(choices.below(5));
  for (size_t d = 0; d < made.shape->size(); ++d)
    if (size_t extent = choices.below(7); extent < 6 || d > 0)
      (*made.shape)[d].number = static_cast<int64_t>(extent);
    else
      (*made.shape)[d].name = "N";
  return made;
}

/// A body or branch: two inputs, a chain of small ops that also read what lies around it, up to three
/// outputs.
std::shared_ptr<const onnx::Graph> graph(Choices& choices) {
  static const char* const kOps[] = {"Add", "Identity", "Concat", "ReduceSum", "Dropout", "MatMul"};
  static const char* const kAround[] = {"x0", "x1", "w0", "w1", "", "nowhere"};
  auto made = std::make_shared<onnx::Graph>();
  std::vector<std::string> names(std::begin(kAround), std::end(kAround));
  for (size_t i = choices.below(4); i > 0; --i) {
    names.push_back("in" + std::to_string(i));
    made->inputs.push_back({names.back(), DataType::f32, "FLOAT", std::nullopt});
  }
  for (size_t i = choices.below(4); i > 0; --i) {
    onnx::Node& node = made->nodes.emplace_back();
    node.name = node.op = kOps[choices.below(std::size(kOps))];
    node.inputs = {names[choices.below(names.size())], names[choices.below(names.size())]};
    node.outputs = {"out" + std::to_string(i)};
    names.push_back(node.outputs.front());
  }
  for (size_t i = choices.below(4); i > 0; --i)
    made->outputs.push_back({names[choices.below(names.size())], {}, "", std::nullopt});
  return made;
}

onnx::NodeAttribute attribute(Choices& choices, const std::string& name) {
  static const char* const kTexts[] = {"",
                                       "none",
                                       "sum",
                                       "mean",
                                       "SAME_UPPER",
                                       "edge",
                                       "wrap",
                                       "reflect",
                                       "add",
                                       "ij,jk->ik",
                                       "...i->...",
                                       "linear",
                                       "cubic",
                                       "floor",
                                       "tanh",
                                       "not_larger",
                                       "tf_crop_and_resize",
                                       "reverse",
                                       "bidirectional"};
  onnx::NodeAttribute made;
  made.name = name;
  switch (name == "body" || name.ends_with("_branch") ? 7 : choices.below(7)) {
    case 0:
      made.value = choices.integer();
      break;
    case 1:
      made.value = integers(choices, 6);
      break;
    case 2:
      made.value = static_cast<double>(choices.integer()) / 2;
      break;
    case 3:
      made.value = std::string(kTexts[choices.below(std::size(kTexts))]);
      break;
    case 4:
      made.value = onnx::HostTensorPtr(tensor(choices));
      break;
    case 5: {
      const std::vector<int64_t> halves = integers(choices, 6);
      std::vector<double> numbers;
      for (int64_t half : halves) numbers.push_back(static_cast<double>(half) / 2);
      made.value = std::move(numbers);
      break;
    }
    case 6:
      made.value = std::vector<std::string>();
      for (size_t i = choices.below(7); i > 0; --i)
        std::get<std::vector<std::string>>(made.value).push_back(choices.below(8) ? "Tanh" : "HardSigmoid");
      break;
    case 7:
      made.value = std::shared_ptr<const onnx::Graph>(graph(choices));
      break;
  }
  return made;
}

onnx::Node node(Choices& choices, std::vector<std::string>& names, size_t number) {
  onnx::Node made;
  auto op = onnx::allOps().begin();
  std::advance(op, choices.below(onnx::allOps().size()));
  made.op = op->first;
  made.name = "n" + std::to_string(number);
  for (size_t i = choices.below(6); i > 0; --i) {
    size_t which = choices.below(names.size() + 1);
    made.inputs.push_back(which == names.size() ? "" : names[which]);
  }
  for (const std::string& name : op->second.attributes)
    if (choices.below(2)) made.attributes.push_back(attribute(choices, name));
  for (size_t i = 0; i <= choices.below(3); ++i) {
    made.outputs.push_back(made.name + "_" + std::to_string(i));
    names.push_back(made.outputs.back());
  }
  return made;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Choices choices(data, size);
  onnx::Model model;
  model.opset = 7 + static_cast<int64_t>(choices.below(18));
  std::vector<std::string> names;
  for (size_t i = 0; i < 3; ++i) {
    names.push_back("x" + std::to_string(i));
    model.graph.inputs.push_back(input(choices, names.back()));
  }
  for (size_t i = 0; i < 3; ++i) {
    names.push_back("w" + std::to_string(i));
    model.graph.initializers.emplace_back(names.back(), tensor(choices));
  }
  for (size_t i = 0; i < 12 && !choices.empty(); ++i) model.graph.nodes.push_back(node(choices, names, i));
  for (const onnx::Node& made : model.graph.nodes) {
    onnx::ValueInfo output;
    output.name = made.outputs.front();
    model.graph.outputs.push_back(output);
  }
  onnx::upgrade(model);
  onnx::ImportedModel imported = onnx::importModel(model, {});
  gpuc::require(imported.text.empty() == !imported.problems.empty(), "a module, or problems");
  for (const onnx::Problem& problem : imported.problems) {
    gpuc::require(problem.text.find('\n') == std::string::npos, "a problem is one line");
    gpuc::require(!problem.text.starts_with("the imported module"), "what is imported is sound");
  }
  return 0;
}
