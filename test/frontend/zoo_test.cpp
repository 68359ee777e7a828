// The zoo's registry: every model with every listed value builds, and what is not listed is refused by name.
#include "frontend/models/Zoo.h"

#include <gtest/gtest.h>

namespace gpuc::models {
namespace {

std::string errorOf(const std::string &model, const std::vector<std::string> &settings) {
  Result<nn::Model> built = buildZooModel(model, settings);
  EXPECT_FALSE(built.ok()) << "no error";
  return built.message();
}

TEST(Zoo, EveryModelBuildsWithItsDefaults) {
  for (const ZooModel &model : zoo()) {
    Result<nn::Model> built = buildZooModel(model.name, {});
    ASSERT_TRUE(built.ok()) << built.message();
    EXPECT_NE(built->text().find("gpuc.recipe"), std::string::npos);
    EXPECT_FALSE(model.summary.empty());
  }
}

TEST(Zoo, EveryKeyTakesItsDefaultAsText) {
  for (const ZooModel &model : zoo()) {
    Result<nn::Model> plain = buildZooModel(model.name, {});
    ASSERT_TRUE(plain.ok()) << plain.message();
    for (const Key &key : model.keys) {
      Result<nn::Model> built = buildZooModel(model.name, {key.name + "=" + key.fallback});
      ASSERT_TRUE(built.ok()) << built.message();
      EXPECT_EQ(built->text(), plain->text()) << key.name;
      EXPECT_FALSE(key.help.empty());
    }
  }
}

TEST(Zoo, EveryKeyChangesTheModel) {
  // A key that does nothing would show here.
  const std::map<std::string, std::vector<std::string>> others = {
      {"linear-regression", {"in=2", "out=3", "batch=5", "optimizer=adam:lr=0.1", "dtype=f64"}},
      {"mlp",
       {"input=8", "hidden=4,5", "classes=3", "activation=tanh", "dropout=0.5", "smoothing=0.1",
        "pixels=false", "batch=5", "optimizer=sgd:lr=0.1", "dtype=f64"}},
      {"convnet", {"in_channels=1", "size=8", "classes=3", "batch=5", "optimizer=sgd:lr=0.1", "dtype=f64"}},
      {"rnn-classifier",
       {"cell=gru", "steps=8", "width=8", "hidden=16", "layers=3", "bidirectional=true", "dropout=0.5",
        "classes=3", "batch=5", "optimizer=sgd:lr=0.1", "dtype=f64"}},
      {"lstm-generator",
       {"layers=3", "embedding=16", "hidden=16", "length=8", "vocabulary=9", "dropout=0.1", "batch=5",
        "optimizer=sgd:lr=0.1", "dtype=f64"}},
      {"resnet18",
       {"in_channels=1", "size=32", "width=8", "classes=3", "smoothing=0.1", "batch=5",
        "optimizer=sgd:lr=0.1", "dtype=f64"}},
      {"resnet50",
       {"in_channels=1", "size=32", "width=8", "classes=3", "smoothing=0.1", "batch=5",
        "optimizer=sgd:lr=0.1", "dtype=f64"}},
      {"transformer",
       {"width=64", "heads=4", "layers=1", "feedforward=8", "src_vocabulary=9", "tgt_vocabulary=9",
        "length=5", "dropout=0", "smoothing=0.1", "batch=5", "optimizer=sgd:lr=0.1", "dtype=f64"}},
      {"gpt2",
       {"size=124M", "layers=1", "heads=2", "width=64", "length=8", "vocabulary=9", "dropout=0.1",
        "bias=false", "lora=2", "lora_alpha=3", "batch=5", "optimizer=sgd:lr=0.1", "dtype=f64"}}};
  for (const ZooModel &model : zoo()) {
    ASSERT_TRUE(others.count(model.name)) << model.name;
    EXPECT_EQ(others.at(model.name).size(), model.keys.size());
    for (const std::string &setting : others.at(model.name)) {
      // An adapter's scale needs an adapter.
      const std::vector<std::string> before(setting.starts_with("lora_alpha") ? 1 : 0, "lora=2");
      std::vector<std::string> after = before;
      after.push_back(setting);
      Result<nn::Model> without = buildZooModel(model.name, before), with = buildZooModel(model.name, after);
      ASSERT_TRUE(without.ok() && with.ok()) << without.message() << with.message();
      EXPECT_NE(with->text(), without->text()) << setting;
    }
  }
}

TEST(Zoo, UnknownNamesAreErrorsWithTheNearest) {
  EXPECT_EQ(errorOf("mpl", {}), "no model 'mpl'; the nearest is 'mlp', all are: linear-regression mlp "
                                "convnet rnn-classifier lstm-generator transformer resnet18 resnet50 gpt2");
  EXPECT_EQ(
      errorOf("linear-regression", {"bach=4"}),
      "linear-regression has no key 'bach'; the nearest is 'batch', all are: in out batch optimizer dtype");
  EXPECT_EQ(errorOf("linear-regression", {"4"}),
            "'4' is not key=value; keys of linear-regression: in out batch optimizer dtype");
  EXPECT_EQ(errorOf("mlp", {"batch=4", "batch=4"}), "key 'batch' is given twice");
}

TEST(Zoo, ValuesThatDoNotReadAreErrors) {
  EXPECT_EQ(errorOf("mlp", {"batch=0"}), "batch=0: expected an integer in [1, 1073741824]");
  EXPECT_EQ(errorOf("mlp", {"classes=x"}), "classes=x: expected an integer in [1, 16777216]");
  EXPECT_EQ(errorOf("mlp", {"dropout=1"}), "dropout=1: expected a number in [0, 1)");
  EXPECT_EQ(errorOf("mlp", {"smoothing=nan"}), "smoothing=nan: expected a number in [0, 1)");
  EXPECT_EQ(errorOf("mlp", {"dtype=f16"}), "dtype=f16: expected one of f32, f64");
  EXPECT_EQ(errorOf("mlp", {"pixels=1"}), "pixels=1: expected one of false, true");
  EXPECT_EQ(errorOf("mlp", {"activation=swish"}),
            "activation=swish: expected one of relu, leaky_relu, gelu, gelu_tanh, silu, tanh, sigmoid");
  EXPECT_EQ(errorOf("mlp", {"hidden=4,,5"}),
            "hidden=4,,5: expected integers in [1, 16777216] with ',' between them, or none");
  EXPECT_EQ(errorOf("mlp", {"input="}), "input=: expected integers in [1, 65536] with 'x' between them");
  EXPECT_EQ(errorOf("mlp", {"input=60000x60000"}), "input=60000x60000: at most 3 extents and 2^24 numbers");
  EXPECT_EQ(errorOf("rnn-classifier", {"cell=elman"}),
            "cell=elman: expected one of rnn, rnn_relu, lstm, gru");
  EXPECT_EQ(errorOf("mlp", {"input=1x1x1x1"}), "input=1x1x1x1: at most 3 extents and 2^24 numbers");
}

} // namespace
} // namespace gpuc::models
