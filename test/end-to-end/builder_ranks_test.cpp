//===- builder_ranks_test.cpp - Models of the C++ builder on several ranks ---===//
//
// Ranks that train a model of one's own, each with a Session and a loop of its own, have the bits of one that
// takes their rows as microbatches (accumulate), variables and optimizer state, dropout on: of models that
// are written down here, and of such as are drawn.
//
//===----------------------------------------------------------------------===//

#include "frontend/builder/nn.h"
#include "runtime/comm/shared_memory.h"
#include "runtime/gpuc.h"
#include "test/end-to-end/drawn_batch.h"
#include "test/end-to-end/zoo_plan.h"

#include <cstdlib>
#include <functional>
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <thread>

namespace gpuc::test {
namespace {

using nn::Loss;
using nn::Tensor;

constexpr int64_t kRows = 2, kTime = 4, kWidth = 6, kWords = 9, kSteps = 3;

nn::Input sequences() { return {"x", {nn::kBatch, kTime, kWidth}}; }
nn::Input words() { return {"x", {nn::kBatch, kTime}, DataType::i32, kWords}; }
nn::Input labels(int64_t classes = 3) { return {"labels", {nn::kBatch}, DataType::i32, classes}; }

Loss classified(const Tensor &logits, const Tensor &labels) { return nn::crossEntropy(logits, labels); }

/// A layer that is what a function makes of its parts.
struct Net : nn::Layer {
  std::function<Tensor(Net &, const Tensor &)> body;
  Tensor forward(const Tensor &x) override { return body(*this, x); }
  using nn::Layer::add;
  using nn::Module::parameter;
};

//===----------------------------------------------------------------------===//
// Models that are written down
//===----------------------------------------------------------------------===//

void build(nn::ModelBuilder &model, Net &net, const nn::Input &input, const nn::Input &target,
           const std::function<Loss(Tensor, Tensor)> &loss) {
  model.predict({input}, "y", net);
  model.loss({target}, loss);
}

/// Norms of three kinds, of which one is over time.
void norms(nn::ModelBuilder &model, Net &net) {
  auto &layer = net.add("layer", nn::LayerNorm({kTime, kWidth}));
  auto &rms = net.add("rms", nn::RMSNorm({kWidth}));
  auto &group = net.add("group", nn::GroupNorm(2, kTime));
  auto &hidden = net.add("hidden", nn::Linear(kWidth, kWidth));
  auto &head = net.add("head", nn::Linear(kTime * kWidth, 3));
  net.body = [&](Net &, const Tensor &x) {
    return head(flatten(group(x + dropout(gelu(hidden(rms(layer(x)))), 0.3))));
  };
  build(model, net, sequences(), labels(), classified);
}

/// Words whose table is the output layer's, a causal block, and a loss of each word of which some are
/// ignored.
void tiedWeights(nn::ModelBuilder &model, Net &net) {
  auto &words_of = net.add("words", nn::Embedding(kWords, kWidth));
  auto &position = net.add("position", nn::PositionalEncoding(0.2));
  auto &queries = net.add("queries", nn::Linear(kWidth, 3 * kWidth));
  net.body = [&](Net &, const Tensor &ids) {
    Tensor x = position(words_of(ids));
    auto heads = [&](int64_t part) {
      Tensor own = nn::slice(queries(x), 2, part * kWidth, (part + 1) * kWidth);
      return nn::transpose(nn::reshape(own, {nn::kBatch, kTime, 2, kWidth / 2}), 1, 2);
    };
    Tensor seen = nn::attention(heads(0), heads(1), heads(2), {.causal = true, .dropout = 0.2});
    Tensor hidden = x + nn::reshape(nn::transpose(seen, 1, 2), {nn::kBatch, kTime, kWidth});
    return nn::matmul(hidden, words_of.table(hidden), /*transposeRhs=*/true);
  };
  build(model, net, words(), {"next", {nn::kBatch, kTime}, DataType::i32, kWords},
        [](Tensor logits, Tensor next) { return nn::crossEntropy(logits, next, {.ignoreIndex = 0}); });
}

/// Both directions, dropout between layers; the second module's weights are used twice.
void recurrence(nn::ModelBuilder &model, Net &net) {
  auto &lstm = net.add("lstm", nn::LSTM(kWidth, 3, {.layers = 2, .dropout = 0.3, .bidirectional = true}));
  auto &gru = net.add("gru", nn::GRU(6, 6));
  auto &head = net.add("head", nn::Linear(6, 3));
  net.body = [&](Net &, const Tensor &x) {
    Tensor once = gru(lstm(x).output).output;
    return head(nn::select(gru(once).output, 1, -1));
  };
  build(model, net, sequences(), labels(), classified);
}

/// A loop of one's own, with a parameter that each step uses, and a loss that weighs rows by what it finds in
/// them.
void ownLoss(nn::ModelBuilder &model, Net &net) {
  auto &head = net.add("head", nn::Linear(kWidth, kWidth));
  net.body = [&](Net &self, const Tensor &x) {
    Tensor decay = nn::sigmoid(self.parameter(x, "decay", {kWidth}, nn::Initializer::normal(0, 1)));
    Tensor zero = nn::select(x, 1, 0) * 0.0;
    auto step = [](const std::vector<Tensor> &now, const std::vector<Tensor> &carried,
                   const std::vector<Tensor> &given) -> nn::ScanValues {
      Tensor next = carried[0] * nn::broadcastTo(given[0], carried[0].shape()) + nn::tanh(now[0]);
      return {{next}, {next}};
    };
    return dropout(head(nn::scan({x}, {zero}, {decay}, step).outputs[0]), 0.25);
  };
  build(model, net, sequences(), {"y", {nn::kBatch, kTime, kWidth}}, [](Tensor found, Tensor wanted) -> Loss {
    Tensor weight = nn::sigmoid(nn::mean(wanted, {1, 2}));
    Tensor each = nn::mean(nn::log(nn::abs(found - wanted) + 1.0), {1, 2});
    return {nn::sum(weight * each, {0}), nn::sum(weight, {0})};
  });
}

/// Sorted, gathered and picked; of a count that no row adds to.
void order(nn::ModelBuilder &model, Net &net) {
  auto &hidden = net.add("hidden", nn::Linear(kWidth, 8));
  auto &head = net.add("head", nn::Linear(4, 3));
  net.body = [&](Net &, const Tensor &x) {
    Tensor best = nn::topK(nn::mean(hidden(x), {1}), 4).values;
    return head(nn::sort(dropout(best, 0.2)).values);
  };
  build(model, net, sequences(), labels(), [](Tensor logits, Tensor labels) -> Loss {
    Loss loss = nn::crossEntropy(logits, labels);
    return {loss.sum / loss.count, nn::constant(logits, {}, {1})};
  });
}

/// Means, squares of differences between rows, and frozen weights.
void rowsThatKnowOneAnother(nn::ModelBuilder &model, Net &net) {
  auto &frozen = net.add("frozen", nn::Linear(kWidth, kWidth));
  frozen.requiresGrad(false);
  auto &norm = net.add("norm", nn::BatchNorm(kTime));
  auto &head = net.add("head", nn::Linear(kWidth, 3));
  net.body = [&](Net &, const Tensor &x) {
    Tensor hidden = norm(nn::silu(frozen(x)));
    return head(nn::mean(dropout(hidden, 0.5), {1}));
  };
  build(model, net, sequences(), labels(), classified);
}

using Builder = std::function<void(nn::ModelBuilder &, Net &)>;

//===----------------------------------------------------------------------===//
// Models that are drawn
//===----------------------------------------------------------------------===//

/// A row of blocks, each of which takes and gives [batch, time, width].
class Drawing {
public:
  explicit Drawing(uint32_t seed) : seed_(seed) {}

  void operator()(nn::ModelBuilder &model, Net &net) {
    random_.seed(seed_); // the same model each time
    const int64_t blocks = 2 + below(4);
    std::vector<std::function<Tensor(const Tensor &)>> row;
    for (int64_t i = 0; i < blocks; ++i)
      row.push_back(!row.empty() && below(6) == 0 ? row[below(row.size())] : block(net, std::to_string(i)));
    auto &head = net.add("head", nn::Linear(kWidth, 3));
    net.body = [&head, row](Net &, Tensor x) {
      for (const auto &each : row)
        x = each(x);
      return head(nn::mean(x, {1}));
    };
    const int64_t kind = below(4);
    const std::vector<double> weights = {0.5, 2, 1};
    build(model, net, sequences(), labels(), [=](Tensor logits, Tensor labels) -> Loss {
      Loss loss = nn::crossEntropy(logits, labels,
                                   {.smoothing = kind == 1 ? 0.1 : 0.0,
                                    .ignoreIndex = kind == 2 ? 1 : -100,
                                    .weight = kind == 1 ? nn::constant(logits, {3}, weights) : Tensor()});
      if (kind != 3)
        return loss;
      return {loss.sum + nn::sum(logits * logits, {0, 1}) * 0.01, loss.count};
    });
  }

private:
  uint64_t below(uint64_t end) { return random_() % end; }
  double chance() { return below(2) ? 0.3 : 0.0; }

  std::function<Tensor(const Tensor &)> block(Net &net, const std::string &name) {
    const double p = chance();
    const bool flag = below(2);
    switch (below(10)) {
    case 0: {
      auto &layer = net.add(name, nn::Linear(kWidth, kWidth));
      return [&layer, p](const Tensor &x) { return x + dropout(gelu(layer(x)), p); };
    }
    case 1: {
      auto &layer = net.add(name, nn::LayerNorm({kWidth}));
      return [&layer](const Tensor &x) { return layer(x); };
    }
    case 2: {
      auto &layer = net.add(name, nn::RMSNorm({kWidth}));
      return [&layer, p](const Tensor &x) { return dropout(layer(x), p); };
    }
    case 3: {
      auto &layer = net.add(name, nn::GroupNorm(flag ? 1 : 2, kTime));
      return [&layer](const Tensor &x) { return layer(x); };
    }
    case 4: {
      auto &layer = net.add(name, nn::Linear(kWidth, 3 * kWidth, flag));
      return [&layer, p, flag](const Tensor &x) {
        auto part = [&](int64_t i) {
          Tensor own = nn::slice(layer(x), 2, i * kWidth, (i + 1) * kWidth);
          return nn::transpose(nn::reshape(own, {nn::kBatch, kTime, 3, kWidth / 3}), 1, 2);
        };
        Tensor seen = nn::attention(part(0), part(1), part(2), {.causal = flag, .dropout = p});
        return nn::reshape(nn::transpose(seen, 1, 2), {nn::kBatch, kTime, kWidth});
      };
    }
    case 5: {
      auto &layer =
          net.add(name, nn::GRU(kWidth, flag ? 3 : 6, {.layers = 2, .dropout = p, .bidirectional = flag}));
      return [&layer](const Tensor &x) { return layer(x).output; };
    }
    case 6: {
      auto &layer = net.add(name, nn::LSTM(kWidth, flag ? 3 : 6, {.bidirectional = flag}));
      return [&layer](const Tensor &x) { return layer(x).output; };
    }
    case 7: {
      auto &layer = net.add(name, nn::Conv1d(kTime, kTime, 3, {.padding = 1, .groups = flag ? 2 : 1}));
      return [&layer](const Tensor &x) { return nn::silu(layer(x)); };
    }
    case 8:
      return [flag](const Tensor &x) { return nn::sort(x, flag ? 1 : 2).values + nn::softmax(x); };
    default: {
      auto &layer = net.add(name, nn::Checkpoint(nn::Sequential(nn::Linear(kWidth, 12), nn::Dropout(p),
                                                                nn::Tanh(), nn::Linear(12, kWidth))));
      return [&layer](const Tensor &x) { return x + layer(x); };
    }
    }
  }

  uint32_t seed_;
  std::mt19937 random_;
};

//===----------------------------------------------------------------------===//
// Training
//===----------------------------------------------------------------------===//

struct Recipe {
  std::string optimizer = "adamw:lr=0.01";
  std::vector<std::pair<std::string, std::string>> entries;
};

Result<Plan> compile(const Builder &builder, DataType floats, const Recipe &recipe,
                     std::pair<std::string, std::string> parts) {
  Net net;
  nn::ModelBuilder model("own", floats);
  builder(model, net);
  model.recipe({.batch = kRows, .optimizer = recipe.optimizer});
  GPUC_ASSIGN_OR_RETURN(nn::Model finished, model.finish());
  PipelineOptions options;
  options.seed = 11;
  options.recipe = recipe.entries;
  options.recipe.push_back(std::move(parts));
  GPUC_ASSIGN_OR_RETURN(const std::unique_ptr<ZooPlan> plan, compileModel(finished, "host", options));
  return Plan::parse(plan->bytes);
}

/// By variable, and with each step's loss_sum and count.
using State = std::map<std::string, Bytes>;

/// Some steps with rows number `first` to `last` of each batch, which are parts that were drawn by
/// themselves.
Result<State> train(const Plan &plan, int64_t first, int64_t last, Communicator *ranks) {
  GPUC_ASSIGN_OR_RETURN(Session session, Session::create(plan, {.threads = 1, .communicator = ranks}));
  GPUC_RETURN_IF_ERROR(session.initialize());
  GPUC_ASSIGN_OR_RETURN(const ProgramId step, session.program("train_step"));
  ProgramInfo part = plan.info().programs[step.index];
  for (InputInfo &input : part.inputs)
    input.spec.shape[0] = kRows;
  State state;
  for (int64_t i = 0; i < kSteps; ++i) {
    std::vector<Bytes> rows(part.inputs.size());
    for (int64_t number = first; number < last; ++number) {
      const Batch drawn(part, 100 * static_cast<uint64_t>(i) + static_cast<uint64_t>(number));
      for (size_t input = 0; input < rows.size(); ++input) {
        const auto *begin = static_cast<const std::byte *>(drawn.views[input].data);
        rows[input].insert(rows[input].end(), begin, begin + part.inputs[input].spec.sizeBytes());
      }
    }
    std::vector<HostTensorView> views;
    const ProgramInfo &whole = plan.info().programs[step.index];
    for (size_t input = 0; input < rows.size(); ++input)
      views.emplace_back(rows[input].data(), whole.inputs[input].spec.type, whole.inputs[input].spec.shape);
    GPUC_RETURN_IF_ERROR(session.run(step, views));
    GPUC_RETURN_IF_ERROR(session.wait());
    for (size_t output = 0; output < 2; ++output) {
      const HostTensorView view = session.output(step, output);
      const auto *begin = static_cast<const std::byte *>(view.data);
      state["step " + std::to_string(i) + (output ? " count" : " loss")] =
          Bytes(begin, begin + sizeOf(view.type));
    }
  }
  for (const VariableInfo &variable : plan.info().variables) {
    Bytes &bytes = state[variable.spec.name];
    bytes.resize(static_cast<size_t>(variable.spec.sizeBytes()));
    GPUC_RETURN_IF_ERROR(session.readVariable(variable.spec.name, bytes));
  }
  return state;
}

/// Of ranks with a thread each.
std::vector<Result<State>> trainOnRanks(const Plan &plan, int64_t ranks) {
  Result<SharedRanks> shared = SharedRanks::create(ranks);
  std::vector<Result<State>> states(static_cast<size_t>(ranks), Status::error("never began"));
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      SharedCommunicator communicator(*shared, rank, std::chrono::seconds(60));
      states[static_cast<size_t>(rank)] = train(plan, rank, rank + 1, &communicator);
      if (!states[static_cast<size_t>(rank)].ok())
        shared->lose(rank, "failed");
    });
  for (std::thread &thread : threads)
    thread.join();
  return states;
}

/// A microbatch goes on with the running statistics of the last one, ranks keep the mean of theirs; and who
/// each is, they say differently.
bool isOfRanks(const std::string &name) {
  return name == "rank" || name == "world_size" || name.ends_with("running_mean") ||
         name.ends_with("running_var") || name.ends_with("num_batches_tracked");
}

void checkSame(const Builder &builder, DataType floats, const Recipe &recipe, int64_t ranks) {
  Result<Plan> parallel = compile(builder, floats, recipe, {"data_parallel", "true"});
  Result<Plan> alone = compile(builder, floats, recipe, {"accumulate", std::to_string(ranks)});
  ASSERT_TRUE(parallel.ok()) << parallel.message();
  ASSERT_TRUE(alone.ok()) << alone.message();
  const Result<State> expected = train(*alone, 0, ranks, nullptr);
  ASSERT_TRUE(expected.ok()) << expected.message();
  for (const Result<State> &found : trainOnRanks(*parallel, ranks)) {
    ASSERT_TRUE(found.ok()) << found.message();
    for (const auto &[name, bytes] : *expected)
      if (!isOfRanks(name))
        EXPECT_TRUE(found->contains(name) && found->at(name) == bytes) << name;
  }
}

const std::map<std::string, Builder> kModels = {
    {"norms", norms},           {"tiedWeights", tiedWeights},
    {"recurrence", recurrence}, {"ownLoss", ownLoss},
    {"order", order},           {"rowsThatKnowOneAnother", rowsThatKnowOneAnother},
};

TEST(BuilderRanks, ModelsOfOnesOwn) {
  for (const auto &[name, builder] : kModels)
    for (int64_t ranks : {2, 3, 4}) {
      SCOPED_TRACE(name + " on " + std::to_string(ranks));
      checkSame(builder, ranks == 3 ? DataType::f64 : DataType::f32,
                ranks == 4 ? Recipe{"sgd:lr=0.1,momentum=0.9", {{"clip_norm", "0.1"}}} : Recipe{}, ranks);
    }
}

TEST(BuilderRanks, ModelsThatAreDrawn) {
  const char *rounds = std::getenv("GPUC_ROUNDS");
  const uint32_t count = rounds ? static_cast<uint32_t>(std::atoi(rounds)) : 8;
  for (uint32_t seed = 0; seed < count; ++seed) {
    SCOPED_TRACE("drawn " + std::to_string(seed));
    checkSame(Drawing(seed), seed % 2 ? DataType::f64 : DataType::f32, {}, 2 + seed % 3);
  }
}

} // namespace
} // namespace gpuc::test
