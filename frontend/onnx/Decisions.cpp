//===- Decisions.cpp - What the importer decided, and says ------------------===//
//
// A file does not tell everything that training needs to know. What was decided without being told is said
// in one line with its cure; where a parameter of the model has gone from the file, training is refused.
//
//===----------------------------------------------------------------------===//

#include "frontend/onnx/Distances.h"
#include "frontend/onnx/Importer.h"
#include "frontend/onnx/Text.h"

#include <algorithm>

namespace gpuc::onnx {

static const char *const kCure = "export with dynamo=True, optimize=False (or, with dynamo=False, "
                                 "training=TrainingMode.PRESERVE, do_constant_folding=False)";

static const char *const kNoDistance =
    "computed as the file has it, without the absolute value of differences: PyTorch's dynamo=False writes "
    "torch.cdist and pairwise_distance so, and what comes of it is no distance, or NaN; write the model's as "
    "(a - b).abs().pow(p).sum(-1).pow(1 / p) and export it again";

/// What keeps training from being the exported model's. It is an error if training is asked for, unless the
/// user takes the file for what it is.
void Importer::refuseTraining(const std::string &text) {
  if (options_.loss.empty() || options_.acceptFolded)
    out_.warnings.push_back(oneLine(text + ": what is trained differs from the model; " + kCure));
  else
    report(text + ": trained like this it would not be the model that was exported; " + kCure +
           "; --accept-folded trains it as it is");
}

void Importer::say(const std::string &decision, const std::string &name) {
  std::vector<std::string> &names = decided_[decision];
  if (std::find(names.begin(), names.end(), name) == names.end())
    names.push_back(name);
}

void Importer::reportDecisions(const Unmerged &unmerged) {
  if (!unmerged.apart.empty())
    out_.warnings.push_back(
        oneLine(someOf(unmerged.apart) + " (" + std::to_string(unmerged.apart.size()) +
                ") begin equal to other weights and were merged with them in the file; each is a "
                "variable of its own"));
  if (!unmerged.unsure.empty())
    refuseTraining(
        someOf(unmerged.unsure) + " (" + std::to_string(unmerged.unsure.size()) +
        ") were one initializer with weights of other nodes, and whether they are tied or only began equal "
        "is not known");
  if (!unmerged.copies.empty())
    refuseTraining("the exporter wrote tied weights twice, transposed (" +
                   std::to_string(unmerged.copies.size()) + "): " + someOf(unmerged.copies));
  if (!unmerged.lost.empty())
    refuseTraining("the exporter's optimizer has merged, folded or left out parameters (" +
                   std::to_string(unmerged.lost.size()) + "): " + someOf(unmerged.lost));
  if (!computed_.empty())
    refuseTraining("the exporter computed what would be trained (" + std::to_string(computed_.size()) +
                   ") from the model's parameters: " + someOf({computed_.begin(), computed_.end()}));
  for (const Node *root : signedDistances(model_.graph))
    say(kNoDistance, root->name);
  for (const auto &[decision, names] : decided_)
    out_.warnings.push_back(oneLine(someOf(names) + " (" + std::to_string(names.size()) + "): " + decision));
}

} // namespace gpuc::onnx
