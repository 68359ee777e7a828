// A model of one's own, built, compiled and trained in one process, from pretrained weights if there are any:
//
//   train-own-model idx:train trained.safetensors [pretrained.safetensors]
//
// Images of 28x28 and labels from 0 to 9, as any --data has them.
#include "frontend/builder/nn.h"
#include "passes/CompileModel.h"
#include "runtime/train/feed.h"
#include "runtime/weights/variable_store.h"

#include <cstdio>

using namespace gpuc;

struct Net : nn::Layer {
  nn::Conv2d &conv = add("conv", nn::Conv2d(1, 8, 3));
  nn::Linear &head = add("head", nn::Linear(8 * 26 * 26, 10));

  nn::Tensor forward(const nn::Tensor &image) override {
    return head(flatten(relu(conv(image.to(DataType::f32) / 255))));
  }
};

Result<nn::Model> buildModel() {
  Net net;
  nn::ModelBuilder model("own_model");
  model.predict({{"x", {nn::kBatch, 1, 28, 28}, DataType::ui8}}, "logits", net);
  const nn::Input labels = {"labels", {nn::kBatch}, DataType::i32, /*range=*/10};
  model.loss({labels}, [](nn::Tensor logits, nn::Tensor labels) { return nn::crossEntropy(logits, labels); });
  model.recipe({.batch = 32, .optimizer = "adam:lr=1e-3"});
  return model.finish();
}

/// The plan, in memory; what it says beside that goes to stderr.
Result<Plan> compile(const nn::Model &model) {
  Diagnosis wrong;
  Result<Compiled> compiled =
      compileModel({.text = model.text(), .name = "own_model", .recipe = {{"clip_norm", "1"}}}, &wrong);
  if (!compiled.ok())
    return errorf("layer '%s': %s", wrong.layer.c_str(), wrong.text.c_str());
  for (const Diagnosis &warning : compiled->warnings)
    std::fprintf(stderr, "layer '%s': %s\n", warning.layer.c_str(), warning.text.c_str());
  return Plan::parse(compiled->plan);
}

Status train(const std::string &data, const std::string &output, const std::vector<std::string> &weights) {
  GPUC_ASSIGN_OR_RETURN(nn::Model model, buildModel());
  GPUC_ASSIGN_OR_RETURN(Plan plan, compile(model));
  GPUC_ASSIGN_OR_RETURN(Session session, Session::create(plan));
  VariableStore variables(session);
  GPUC_RETURN_IF_ERROR(weights.empty() ? session.initialize() : variables.startFrom(weights));

  GPUC_ASSIGN_OR_RETURN(ProgramId step, session.program("train_step"));
  GPUC_ASSIGN_OR_RETURN(Feed feed, Feed::open(plan.info().programs[step.index], data));
  GPUC_RETURN_IF_ERROR(feed.start({.batch = plan.info().batch, .seed = plan.info().seed}, {}));
  const int64_t steps = feed.sampler().stepsPerEpoch();
  for (int epoch = 1; epoch <= 3; ++epoch) {
    double sum = 0;
    for (int64_t i = 0; i < steps; ++i) {
      GPUC_ASSIGN_OR_RETURN(FeedBatch batch, feed.next());
      GPUC_RETURN_IF_ERROR(session.run(step, batch.inputs, batch.run_rows));
      GPUC_RETURN_IF_ERROR(session.wait());
      feed.release();
      sum += *static_cast<const float *>(session.output(step, 0).data); // of the losses of the batch's rows
    }
    std::printf("epoch %d  loss %.4f\n", epoch, sum / (steps * plan.info().batch));
  }
  return variables.save(output);
}

int main(int argc, char **argv) {
  if (argc != 3 && argc != 4) {
    std::fprintf(stderr, "error: usage: train-own-model DATA OUTPUT [WEIGHTS]\n");
    return 2;
  }
  Status status = train(argv[1], argv[2], {argv + 3, argv + argc});
  if (!status.ok())
    std::fprintf(stderr, "error: %s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}
