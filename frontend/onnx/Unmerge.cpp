//===- Unmerge.cpp - Initializers that an exporter merged, apart again ------===//
//
// Where the export's notes say which tensors a node was made of, its initializers are compared with those.
// All else goes by role: what batch norm assigns is no parameter, whatever its value was.
//
//===----------------------------------------------------------------------===//

#include "frontend/onnx/Unmerge.h"

#include "frontend/onnx/Exporter.h"
#include "frontend/onnx/reader/HostTensor.h"

#include <algorithm>
#include <cstring>
#include <set>

namespace gpuc::onnx {
namespace {

/// The nodes that one node of the export became, in the graph's order.
using Group = std::vector<Node *>;

bool contains(const std::vector<std::string> &list, const std::string &name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

bool isUniform(const HostTensor &tensor) {
  const size_t size = tensor.supported ? sizeOf(tensor.spec.type) : 0;
  const std::string &bytes = *tensor.bytes;
  return size > 0 && bytes.size() > size && std::equal(bytes.begin() + size, bytes.end(), bytes.begin());
}

HostTensorPtr transposed(const HostTensor &tensor) {
  const int64_t rows = tensor.spec.shape[0], columns = tensor.spec.shape[1];
  std::vector<int64_t> sources;
  for (int64_t c = 0; c < columns; ++c)
    for (int64_t r = 0; r < rows; ++r)
      sources.push_back(r * columns + c);
  return pick(tensor, {columns, rows}, sources);
}

/// Of two matrices; most differ in their first elements.
bool isTransposeOf(const HostTensor &a, const HostTensor &b) {
  const size_t rows = a.spec.shape[0], columns = a.spec.shape[1], size = sizeOf(a.spec.type);
  if (a.spec.type != b.spec.type || b.spec.shape != std::vector<int64_t>{a.spec.shape[1], a.spec.shape[0]})
    return false;
  for (size_t r = 0; r < rows; ++r)
    for (size_t c = 0; c < columns; ++c)
      if (std::memcmp(&(*a.bytes)[(r * columns + c) * size], &(*b.bytes)[(c * rows + r) * size], size) != 0)
        return false;
  return true;
}

class Unmerger {
public:
  explicit Unmerger(Model &model) : graph_(model.graph), origins_(model) {
    for (const auto &[name, tensor] : graph_.initializers) {
      values_.emplace(name, tensor);
      if (std::string torch = TorchName::of(graph_, name); !torch.empty()) {
        torchOf_[name] = torch;
        initializerOf_[torch] = name;
      }
    }
    for (const ValueInfo &input : graph_.inputs)
      inputs_.insert(input.name);
  }

  Unmerged run() {
    splitByNotes();
    splitByRole();
    placeTransposes();
    findCopies();
    return std::move(out_);
  }

private:
  bool isFloat(const std::string &name) const {
    auto found = values_.find(name);
    return found != values_.end() && found->second->supported && gpuc::isFloat(found->second->spec.type);
  }

  /// Another initializer of the same value, under a name that is not taken.
  std::string add(std::string name, const HostTensorPtr &value) {
    while (values_.count(name) || inputs_.count(name))
      name += "_";
    auto copy = std::make_shared<HostTensor>(*value);
    copy->spec.name = name;
    graph_.initializers.emplace_back(name, copy);
    values_.emplace(name, copy);
    out_.apart.push_back(name);
    return name;
  }

  //===-- By notes ---------------------------------------------------------===//

  void splitByNotes() {
    std::vector<std::string> order;
    std::map<std::string, Group> groups;
    for (Node &node : graph_.nodes)
      if (std::string exported = exportedNode(node); !exported.empty()) {
        if (groups[exported].empty())
          order.push_back(exported);
        groups[exported].push_back(&node);
      }
    for (const std::string &exported : order)
      resolve(groups[exported]);
    checkReaders(groups);
    std::sort(out_.lost.begin(), out_.lost.end());
    out_.lost.erase(std::unique(out_.lost.begin(), out_.lost.end()), out_.lost.end());
  }

  /// Initializers of the group that the export knows as tensors of the model, or that were made of some.
  std::vector<std::string> tensorsOf(const Group &group) const {
    std::vector<std::string> names;
    for (const Node *node : group)
      for (const std::string &input : node->inputs)
        if ((torchOf_.count(input) || isComputed(input)) && !contains(names, input))
          names.push_back(input);
    return names;
  }

  bool isComputed(const std::string &name) const {
    return isFloat(name) && origins_.of(name) == Origin::computed;
  }

  /// What the export's node reads is compared with what is there. What both name is settled; of the rest,
  /// if it is as many, each stands for the one at its place.
  void resolve(const Group &group) {
    std::vector<std::string> here = tensorsOf(group), asked;
    for (const std::string &name : TorchName::usedBy(*group.front()))
      if (!inputs_.count(name))
        asked.push_back(name);
    if (group.size() == 1 && placeByPlace(group, asked))
      return;
    std::vector<std::string> missing = asked;
    std::erase_if(missing, [&](const std::string &name) {
      auto found = initializerOf_.find(name);
      return found != initializerOf_.end() && contains(here, found->second);
    });
    std::erase_if(here, [&](const std::string &name) {
      auto found = torchOf_.find(name);
      return found != torchOf_.end() && contains(asked, found->second);
    });
    const bool rewritten = std::any_of(group.begin(), group.end(),
                                       [](const Node *node) { return node->notes.count(kRewriteNote) > 0; });
    if (here.size() == missing.size() && !here.empty())
      for (size_t i = 0; i < here.size(); ++i)
        standFor(here[i], missing[i], group, placesOf(here[i], group));
    else
      for (const std::string &name : missing)
        if (name.starts_with("p_") && (rewritten || !here.empty() || !initializerOf_.count(name)))
          out_.lost.push_back(TorchName::dotted(name, *group.front()));
  }

  using Places = std::vector<std::string *>;

  /// Of one node that reads as many as the export's did, each stands for the one at its place.
  bool placeByPlace(const Group &group, const std::vector<std::string> &asked) {
    Places places;
    for (std::string &input : group.front()->inputs)
      if (torchOf_.count(input) || isComputed(input))
        places.push_back(&input);
    if (places.size() != asked.size())
      return false;
    // At its own place, or as a product has its operands at another one; what is left goes by the order.
    std::vector<std::string> missing = asked;
    auto settle = [&](size_t place, size_t at) {
      auto known = places[place] ? torchOf_.find(*places[place]) : torchOf_.end();
      if (known != torchOf_.end() && known->second == missing[at])
        places[place] = nullptr, missing[at].clear();
    };
    for (size_t i = 0; i < places.size(); ++i)
      settle(i, i);
    for (size_t i = 0; i < places.size(); ++i)
      for (size_t at = 0; at < missing.size(); ++at)
        settle(i, at);
    std::erase(places, nullptr);
    std::erase(missing, "");
    for (size_t i = 0; i < places.size(); ++i)
      standFor(*places[i], missing[i], group, {places[i]});
    return true;
  }

  static Places placesOf(const std::string &initializer, const Group &group) {
    Places places;
    for (Node *node : group)
      for (std::string &input : node->inputs)
        if (input == initializer)
          places.push_back(&input);
    return places;
  }

  /// At these places of the group `initializer` is the export's `torch`, which is equal to it.
  void standFor(const std::string initializer, const std::string &torch, const Group &group,
                const Places &places) {
    const bool plain = torchOf_.count(initializer) > 0;
    HostTensorPtr value = values_.at(initializer);
    if (!plain && !isTransposed(initializer, group))
      return out_.lost.push_back(TorchName::dotted(torch, *group.front()));
    if (!plain)
      value = transposed(*value);
    std::string &own = initializerOf_[torch];
    if (own.empty()) {
      own = add(TorchName::dotted(torch, *group.front()), value);
      torchOf_[own] = torch;
      graph_.notes[own] = {{kTorchNameNote, torch},
                           {kKindNote, torch.starts_with("p_") ? "PARAMETER" : "BUFFER"}};
    } else if (*values_.at(own)->bytes != *value->bytes) {
      return out_.lost.push_back(own);
    }
    for (std::string *place : places)
      *place = plain ? own : transposeOf(own);
  }

  /// A linear layer's matrix, which the exporter's MatMul has the other way round.
  bool isTransposed(const std::string &name, const Group &group) const {
    for (const Node *node : group)
      for (size_t i = 0; i < node->inputs.size(); ++i)
        if (node->inputs[i] == name)
          return node->op == "MatMul" && i == 1 && values_.at(name)->spec.shape.size() == 2 &&
                 node->notes.at(kExportedNodeNote).find("target=torch.ops.aten.linear.") != std::string::npos;
    return false;
  }

  std::string transposeOf(const std::string &initializer) {
    std::string &name = transposes_[initializer];
    if (name.empty())
      name = initializer + ".transposed\n"; // No file has a name with a line's end in it.
    return name;
  }

  void placeTransposes() {
    std::vector<Node> made;
    for (const auto &[initializer, name] : transposes_) {
      Node &node = made.emplace_back();
      node.name = initializer;
      node.op = "Transpose";
      node.inputs = {initializer};
      node.outputs = {name};
    }
    graph_.nodes.insert(graph_.nodes.begin(), std::make_move_iterator(made.begin()),
                        std::make_move_iterator(made.end()));
  }

  /// Two norms of one input that are equal while they are fresh become one node. What tells is that the
  /// export counted more readers of the input than there are.
  void checkReaders(const std::map<std::string, Group> &groups) {
    std::map<std::string, int64_t> readers = countReaders(groups);
    for (const auto &[exported, group] : groups) {
      std::vector<std::string> tensors = tensorsOf(group);
      bool equal = !tensors.empty() && std::all_of(tensors.begin(), tensors.end(), [&](const auto &name) {
        return torchOf_.count(name) && isUniform(*values_.at(name));
      });
      const std::string &note = group.front()->notes.at(kExportedNodeNote);
      size_t at = note.find("](args = (%");
      if (!equal || at == std::string::npos)
        continue;
      at += std::string("](args = (%").size();
      std::string input = note.substr(at, note.find_first_of(",)", at) - at);
      auto maker = groups.find(input);
      if (maker != groups.end() && readers[input] < countedReaders(*maker->second.front()))
        out_.lost.push_back("another of '" + tensors.front() + "'");
    }
  }

  static int64_t countedReaders(const Node &node) {
    const std::string &note = node.notes.at(kExportedNodeNote), mark = "[num_users=";
    size_t at = note.find(mark);
    return at == std::string::npos ? 0 : std::atoll(note.c_str() + at + mark.size());
  }

  /// How many nodes of the export are left that read each of its values.
  static std::map<std::string, int64_t> countReaders(const std::map<std::string, Group> &groups) {
    std::map<std::string, int64_t> counts;
    for (const auto &[exported, group] : groups) {
      std::set<std::string> read;
      const std::string &note = group.front()->notes.at(kExportedNodeNote);
      for (const std::string &name : namesIn(std::string_view(note).substr(1))) // Behind its own name.
        read.insert(name);
      for (const std::string &name : read)
        ++counts[name];
    }
    return counts;
  }

  //===-- By role ----------------------------------------------------------===//

  struct Use {
    Node *node;
    size_t input;
  };

  static bool isStatistic(const Use &use) { return use.node->op == "BatchNormalization" && use.input >= 3; }

  /// An initializer that one node reads in two roles, or that is a statistic here and none there, was merged;
  /// and then whatever else is the same number everywhere may have been.
  void splitByRole() {
    std::map<std::string, std::vector<Use>> uses;
    for (Node &node : graph_.nodes)
      for (size_t i = 0; i < node.inputs.size() && node.op != "Identity"; ++i)
        if (isFloat(node.inputs[i]) && !values_.at(node.inputs[i])->spec.shape.empty())
          uses[node.inputs[i]].push_back({&node, i});
    bool merged = false;
    for (auto &[name, all] : uses)
      merged |= splitStatistics(name, all);
    if (merged)
      for (auto &[name, all] : uses)
        if (!torchOf_.count(name))
          splitUniform(name, all);
  }

  /// Each batch norm's mean and variance by themselves, where anything shows that they were merged.
  bool splitStatistics(const std::string &name, std::vector<Use> &all) {
    std::vector<Use> statistics;
    std::copy_if(all.begin(), all.end(), std::back_inserter(statistics), isStatistic);
    bool mixed = !statistics.empty() && statistics.size() < all.size();
    // Numbers that are not fresh any more are equal only where they are the same.
    const bool fresh = isUniform(*values_.at(name));
    for (const Use &use : statistics)
      mixed |= fresh &&
               (use.input != statistics.front().input || !isSameLayer(*use.node, *statistics.front().node));
    if (!mixed)
      return false;
    std::map<std::string, std::string> made; // By what tells a layer from others.
    for (const Use &use : statistics) {
      const std::string role = use.input == 3 ? "running_mean" : "running_var";
      std::string key = role;
      for (size_t i = 1; i < 3; ++i)
        key += "\n" + use.node->inputs[i];
      // Equal statistics of equal parameters: two fresh layers, or one that is called twice.
      std::string &own = made[isFresh(*use.node) ? use.node->name + "\n" + role : key];
      if (own.empty() && statistics.size() == all.size() && made.size() == 1)
        own = name;
      if (own.empty())
        own = add(use.node->name + "." + role, values_.at(name));
      use.node->inputs[use.input] = own;
    }
    std::erase_if(all, isStatistic);
    return true;
  }

  static bool isSameLayer(const Node &a, const Node &b) {
    return a.inputs.size() == b.inputs.size() && a.inputs.size() > 1 &&
           std::equal(a.inputs.begin() + 1, a.inputs.end(), b.inputs.begin() + 1);
  }

  /// Whether nothing that the node reads of the model tells it from another fresh one.
  bool isFresh(const Node &node) const {
    for (size_t i = 1; i < node.inputs.size(); ++i)
      if (auto found = values_.find(node.inputs[i]); found != values_.end() && !isUniform(*found->second))
        return false;
    return true;
  }

  /// A vector of one number that several nodes read. Layers whose other weights differ are different layers;
  /// where there are none, only its value says that it was merged.
  void splitUniform(const std::string &name, const std::vector<Use> &uses) {
    const HostTensor &value = *values_.at(name);
    if (uses.size() < 2 || value.spec.shape.size() != 1 || !isUniform(value))
      return;
    std::map<std::string, std::string> made;
    bool first = true;
    for (const Use &use : uses) {
      std::string key = std::to_string(use.input), weights;
      for (size_t i = 1; i < use.node->inputs.size(); ++i)
        if (auto found = values_.find(use.node->inputs[i]);
            found != values_.end() && !isUniform(*found->second))
          weights += "\n" + use.node->inputs[i];
      std::string &own = made[key + (weights.empty() ? use.node->name : weights)];
      if (own.empty()) {
        own = first ? name : add(use.node->name + "." + std::to_string(use.input), values_.at(name));
        if (!first && weights.empty())
          out_.unsure.push_back(own);
        first = false;
      }
      use.node->inputs[use.input] = own;
    }
  }

  //===-- Without notes ----------------------------------------------------===//

  /// PyTorch's older exporter folds a weight's Transpose: of a tied one that another node reads as it is,
  /// that is a second initializer.
  void findCopies() {
    for (const auto &[name, tensor] : graph_.initializers) {
      if (origins_.of(name) != Origin::reshaped || !isMatrix(*tensor) || isUniform(*tensor))
        continue;
      for (const auto &[other, weight] : graph_.initializers)
        if (origins_.of(other) == Origin::state && isMatrix(*weight) && isTransposeOf(*tensor, *weight))
          out_.copies.push_back(name + "' of '" + other);
    }
  }

  static bool isMatrix(const HostTensor &tensor) {
    return tensor.supported && gpuc::isFloat(tensor.spec.type) && tensor.spec.shape.size() == 2;
  }

  Graph &graph_;
  const Origins origins_;
  Unmerged out_;
  std::map<std::string, HostTensorPtr> values_;
  std::set<std::string> inputs_;
  std::map<std::string, std::string> torchOf_;       ///< The export's name, by initializer.
  std::map<std::string, std::string> initializerOf_; ///< And the other way round.
  std::map<std::string, std::string> transposes_;    ///< Values, by initializer.
};

} // namespace

Unmerged unmerge(Model &model) { return Unmerger(model).run(); }

} // namespace gpuc::onnx
