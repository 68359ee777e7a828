//===- Classification.cpp - What models that classify images share ------===//

#include "frontend/models/Classification.h"

namespace gpuc::models {

void classify(nn::ModelBuilder &model, int64_t classes, double smoothing) {
  const nn::Input labels = {"labels", {nn::kBatch}, DataType::i32, classes};
  model.loss({labels}, [&](nn::Tensor logits, nn::Tensor labels) {
    return nn::crossEntropy(logits, labels, {.smoothing = smoothing});
  });
  model.accuracy({labels}, [](nn::Tensor logits, nn::Tensor labels) { return nn::accuracy(logits, labels); });
}

} // namespace gpuc::models
