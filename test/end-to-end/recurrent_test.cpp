//===- recurrent_test.cpp - RNN, LSTM and GRU against PyTorch ---------------===//
//
// Each case of recurrent_reference.py, with the same hashed numbers, compiled and run on the host in f64. x
// and the first states are variables as the parameters are, so that one step of plain SGD takes all their
// gradients off them.
//
//===----------------------------------------------------------------------===//

#include "frontend/builder/nn.h"
#include "runtime/gpuc.h"
#include "test/end-to-end/zoo_plan.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"

#include <array>
#include <cmath>
#include <gtest/gtest.h>
#include <map>

namespace gpuc::test {
namespace {

using nn::Shape;
using nn::Tensor;
using Numbers = std::vector<double>;

// As recurrent_reference.py.
constexpr int64_t kBatch = 3, kTime = 5, kIn = 2, kHidden = 3;
constexpr std::array<int32_t, kBatch> kLengths = {3, 5, 1};
constexpr uint32_t kParameters = 10, kResults = 100, kProducts = 200;

/// As uniform(…) of tensor_files.py, with scale 1.
Numbers hashed(size_t count, uint32_t stream) {
  Numbers numbers;
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t h = i + stream * 0x9E3779B9u;
    h = (h ^ h >> 16) * 0x7FEB352Du;
    h = (h ^ h >> 15) * 0x846CA68Bu;
    numbers.push_back(static_cast<double>((h ^ h >> 16) >> 8) / 0x1p23 - 1);
  }
  return numbers;
}

struct Kept {
  double norm, product;
};

struct Case {
  nn::Cell cell = nn::Cell::lstm;
  nn::RecurrentOptions options;
  bool hasLengths = false, hasStates = false;
  std::string name;
  std::map<std::string, Kept> results, gradients;

  bool isLstm() const { return cell == nn::Cell::lstm; }
};

std::map<std::string, Kept> readKept(const llvm::json::Object &object) {
  std::map<std::string, Kept> kept;
  for (const auto &[name, pair] : object)
    kept[name.str()] = {*(*pair.getAsArray())[0].getAsNumber(), *(*pair.getAsArray())[1].getAsNumber()};
  return kept;
}

Case readCase(const llvm::json::Object &object) {
  static const std::map<std::string, nn::Cell> kCells = {{"rnn", nn::Cell::rnnTanh},
                                                         {"rnn_relu", nn::Cell::rnnRelu},
                                                         {"lstm", nn::Cell::lstm},
                                                         {"gru", nn::Cell::gru}};
  const std::string cell = object.getString("cell")->str();
  auto flag = [&](const char *key) { return *object.getBoolean(key); };
  Case read;
  read.cell = kCells.at(cell);
  read.options = {.layers = *object.getInteger("layers"),
                  .bias = flag("bias"),
                  .batchFirst = flag("batch_first"),
                  .bidirectional = flag("bidirectional")};
  read.hasLengths = flag("lengths");
  read.hasStates = flag("states");
  read.name = cell + "_" + std::to_string(read.options.layers);
  for (const char *key : {"bidirectional", "batch_first", "lengths", "states"})
    if (flag(key))
      read.name += std::string("_") + key;
  read.name += read.options.bias ? "" : "_without_bias";
  read.results = readKept(*object.getObject("results"));
  read.gradients = readKept(*object.getObject("gradients"));
  return read;
}

std::vector<Case> readCases() {
  std::vector<Case> cases;
  auto file = llvm::MemoryBuffer::getFile(GPUC_RECURRENT_NUMBERS);
  if (!file)
    return cases;
  llvm::Expected<llvm::json::Value> parsed = llvm::json::parse((*file)->getBuffer());
  if (!parsed) {
    llvm::consumeError(parsed.takeError());
    return cases;
  }
  for (const llvm::json::Value &value : *parsed->getAsObject()->getArray("cases"))
    cases.push_back(readCase(*value.getAsObject()));
  return cases;
}

//===----------------------------------------------------------------------===//
// The model of a case
//===----------------------------------------------------------------------===//

/// A recurrent module over variables x, h0 and c0.
struct Subject : nn::Module {
  explicit Subject(const Case &tested)
      : tested(tested), rnn(add("rnn", nn::Recurrent(tested.cell, kIn, kHidden, tested.options))) {}

  Tensor variable(const Tensor &user, const char *name, int64_t second, int64_t width) {
    Shape shape = {kBatch, second, width};
    if (!tested.options.batchFirst)
      std::swap(shape[0], shape[1]);
    return parameter(user, name, shape, nn::Initializer::zeros());
  }

  std::vector<Tensor> operator()(const Tensor &lengths) {
    const int64_t states = tested.options.layers * (tested.options.bidirectional ? 2 : 1);
    nn::RecurrentInputs given;
    if (tested.hasLengths)
      given.lengths = tested.options.batchFirst ? lengths : lengths.to(DataType::i64);
    if (tested.hasStates)
      given.h0 = variable(lengths, "h0", states, kHidden);
    if (tested.hasStates && tested.isLstm())
      given.c0 = variable(lengths, "c0", states, kHidden);
    nn::Recurrence h = rnn(variable(lengths, "x", kTime, kIn), given);
    return tested.isLstm() ? std::vector<Tensor>{h.output, h.hn, h.cn} : std::vector<Tensor>{h.output, h.hn};
  }

  const Case &tested;
  nn::Recurrent &rnn;
};

/// The sum of the products of `results` with hashed numbers.
nn::Loss lossOf(const std::vector<Tensor> &results) {
  Tensor total;
  for (auto [i, result] : llvm::enumerate(results)) {
    const Shape shape = result.shape();
    if (shape.size() != 3)
      return {};
    Tensor part = sum(result * constant(result, shape, hashed(shape[0] * shape[1] * shape[2], kResults + i)),
                      {0, 1, 2});
    total = i == 0 ? part : total + part;
  }
  return {total, constant(total, {}, {1})};
}

Result<nn::Model> modelOf(const Case &tested) {
  nn::ModelBuilder model("recurrent", DataType::f64);
  Subject net(tested);
  const nn::Input lengths = {"lengths", {kBatch}, DataType::i32, kTime + 1};
  std::vector<std::string> names = {"output", "hn"};
  if (tested.isLstm())
    names.emplace_back("cn");
  model.predictSeveral({lengths}, names, [&](const std::vector<Tensor> &x) { return net(x[0]); });
  model.loss({lengths}, {}, [&](Tensor lengths) { return lossOf(net(lengths)); });
  model.recipe({.batch = kBatch, .optimizer = "sgd:lr=1"});
  return model.finish();
}

//===----------------------------------------------------------------------===//
// Running it
//===----------------------------------------------------------------------===//

class RecurrentModels : public testing::Test {
protected:
  /// Compiles the model of a case and gives its variables their hashed numbers.
  void open(const Case &tested) {
    Result<nn::Model> model = modelOf(tested);
    ASSERT_TRUE(model.ok()) << model.message();
    Result<std::unique_ptr<ZooPlan>> compiled = compileModel(*model, "host");
    ASSERT_TRUE(compiled.ok()) << compiled.message();
    Result<Plan> plan = Plan::parse((*compiled)->bytes);
    ASSERT_TRUE(plan.ok()) << plan.message();
    Result<Session> session = Session::create(*plan, {.device = "host", .threads = 1, .check_memory = true});
    ASSERT_TRUE(session.ok()) << session.message();
    session_.emplace(std::move(*session));
    ASSERT_TRUE(session_->initialize().ok());

    for (const VariableInfo &variable : session_->plan().info().variables)
      if (variable.trainable)
        first_[variable.spec.name].resize(static_cast<size_t>(variable.spec.sizeBytes()) / sizeof(double));
    static const std::map<std::string, uint32_t> kLeaves = {{"x", 0}, {"h0", 1}, {"c0", 2}};
    uint32_t stream = kParameters;
    for (auto &[name, numbers] : first_) {
      numbers = hashed(numbers.size(), kLeaves.count(name) ? kLeaves.at(name) : stream++);
      ASSERT_TRUE(session_->writeVariable(name, std::as_bytes(std::span(numbers))).ok());
    }
  }

  /// The program's outputs by name.
  std::map<std::string, Numbers> run(const char *name, std::array<int32_t, kBatch> lengths) {
    Result<ProgramId> program = session_->program(name);
    EXPECT_TRUE(program.ok()) << program.message();
    const ProgramInfo &info = session_->plan().info().programs[program->index];
    const int64_t shape[] = {kBatch};
    const HostTensorView input(lengths.data(), DataType::i32, shape);
    Status ran = session_->run(*program, std::span(&input, info.inputs.size()));
    EXPECT_TRUE(ran.ok()) << ran.message();
    EXPECT_TRUE(session_->wait().ok());
    std::map<std::string, Numbers> outputs;
    for (size_t i = 0; i < info.outputs.size(); ++i) {
      const auto *data = static_cast<const double *>(session_->output(*program, i).data);
      outputs[info.outputs[i].name] = Numbers(data, data + info.outputs[i].sizeBytes() / sizeof(double));
    }
    return outputs;
  }

  /// What a step of plain SGD took off each variable.
  std::map<std::string, Numbers> gradients() {
    std::map<std::string, Numbers> gradients;
    for (const auto &[name, before] : first_) {
      Numbers &gradient = gradients[name] = Numbers(before.size());
      EXPECT_TRUE(session_->readVariable(name, std::as_writable_bytes(std::span(gradient))).ok());
      for (size_t i = 0; i < before.size(); ++i)
        gradient[i] = before[i] - gradient[i];
    }
    return gradients;
  }

  std::optional<Session> session_;
  std::map<std::string, Numbers> first_; // by name, and so in the order of Python's sorted()
};

void expectKept(const std::map<std::string, Numbers> &tensors, const std::map<std::string, Kept> &kept) {
  EXPECT_EQ(tensors.size(), kept.size());
  for (const auto &[name, numbers] : tensors) {
    ASSERT_TRUE(kept.count(name)) << name;
    const Numbers other = hashed(numbers.size(), kProducts);
    double squares = 0, product = 0;
    for (size_t i = 0; i < numbers.size(); ++i) {
      squares += numbers[i] * numbers[i];
      product += numbers[i] * other[i];
    }
    const double tolerance = 1e-10 * std::max(kept.at(name).norm, 1.0);
    EXPECT_NEAR(std::sqrt(squares), kept.at(name).norm, tolerance) << name;
    EXPECT_NEAR(product, kept.at(name).product, tolerance) << name;
  }
}

class Recurrent : public RecurrentModels, public testing::WithParamInterface<Case> {};

TEST_P(Recurrent, IsPyTorchs) {
  ASSERT_NO_FATAL_FAILURE(open(GetParam()));
  expectKept(run("predict", kLengths), GetParam().results);
  run("train_step", kLengths);
  expectKept(gradients(), GetParam().gradients);
}

INSTANTIATE_TEST_SUITE_P(Cases, Recurrent, testing::ValuesIn(readCases()),
                         [](const testing::TestParamInfo<Case> &info) { return info.param.name; });

/// PyTorch takes no such rows.
TEST_F(RecurrentModels, ARowWithoutStepsKeepsItsState) {
  Case lstm;
  lstm.options.bidirectional = true;
  lstm.hasLengths = lstm.hasStates = true;
  ASSERT_NO_FATAL_FAILURE(open(lstm));
  std::map<std::string, Numbers> whole = run("predict", {kTime, kTime, kTime}),
                                 odd = run("predict", {0, kTime, kTime});
  ASSERT_EQ(odd.size(), 3u);
  for (const auto &[name, numbers] : odd) {
    const auto row = static_cast<std::ptrdiff_t>(numbers.size() / kBatch);
    EXPECT_EQ(Numbers(numbers.begin() + row, numbers.end()),
              Numbers(whole[name].begin() + row, whole[name].end()));
    const Numbers first(numbers.begin(), numbers.begin() + row);
    const Numbers &state = first_[name == "cn" ? "c0" : "h0"];
    EXPECT_EQ(first, name == "output" ? Numbers(row) : Numbers(state.begin(), state.begin() + row)) << name;
  }
}

} // namespace
} // namespace gpuc::test
