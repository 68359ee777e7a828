//===- ParameterGroups.cpp - Which variable is trained with which numbers ----===//

#include "passes/recipe/ParameterGroups.h"

#include "runtime/base/flags.h"

namespace gpuc {

using namespace mlir;

bool ParameterGroups::Group::matches(StringRef name) const {
  return llvm::any_of(patterns, [&](const auto &pattern) { return pattern.second.match(name); });
}

FailureOr<ParameterGroups::Group> ParameterGroups::readPatterns(ir::SpecAttr spec, EmitError emitError) {
  if (spec.getName() != "group")
    return emitError() << "unknown entry of groups '" << spec.getName()
                       << "': write group(match = \"PATTERN\", key = value)";
  Attribute match = spec.getArguments().get("match");
  SmallVector<Attribute> texts = {match};
  if (auto list = dyn_cast_or_null<ArrayAttr>(match))
    texts = llvm::to_vector(list.getValue());
  Group group;
  for (Attribute text : texts) {
    auto pattern = dyn_cast_or_null<StringAttr>(text);
    if (!pattern)
      return emitError() << "a group needs match, a pattern of variables' names: match = \"*.bias\"";
    auto glob = llvm::GlobPattern::create(pattern.getValue());
    if (!glob)
      return emitError() << "group \"" << pattern.getValue() << "\": " << llvm::toString(glob.takeError());
    group.text += (group.text.empty() ? "" : ", ") + pattern.getValue().str();
    group.patterns.emplace_back(pattern.getValue().str(), std::move(*glob));
  }
  Attribute optional = spec.getArguments().get("optional");
  if (optional && !isa<BoolAttr>(optional))
    return emitError() << "group \"" << group.text << "\": optional must be true or false, but is "
                       << optional;
  group.isOptional = optional && cast<BoolAttr>(optional).getValue();
  if (spec.getArguments().size() < (optional ? 3 : 2))
    return emitError() << "group \"" << group.text
                       << "\" changes nothing: give it a key, such as lr = 1.0e-4";
  return group;
}

LogicalResult ParameterGroups::check(ArrayAttr groups, EmitError emitError) {
  for (auto spec : groups.getAsRange<ir::SpecAttr>())
    if (failed(readPatterns(spec, emitError)))
      return failure();
  return success();
}

FailureOr<ParameterGroups> ParameterGroups::fromRecipe(ir::RecipeOp recipe,
                                                       ArrayRef<ir::VariableOp> trained) {
  auto emitError = [&] { return recipe.emitOpError(); };
  FailureOr<Optimizer> optimizer = Optimizer::fromSpec(*recipe.getOptimizer(), emitError);
  if (failed(optimizer))
    return failure();
  ParameterGroups groups;
  groups.optimizer_ = std::move(*optimizer);
  ArrayAttr specs = recipe.getGroupsAttr() ? recipe.getGroupsAttr() : ArrayAttr::get(recipe.getContext(), {});
  for (auto spec : specs.getAsRange<ir::SpecAttr>()) {
    FailureOr<Group> group = readPatterns(spec, emitError);
    if (failed(group))
      return failure();
    auto ofGroup = [&] {
      InFlightDiagnostic error = emitError();
      error << "group \"" << group->text << "\": ";
      return error;
    };
    FailureOr<SpecNumbers> numbers = groups.optimizer_.readGroup(spec, {"match", "optional"}, ofGroup);
    if (failed(numbers))
      return failure();
    group->numbers = std::move(*numbers);
    groups.groups_.push_back(std::move(*group));
  }
  if (failed(groups.checkUse(trained, emitError)))
    return failure();
  return groups;
}

LogicalResult ParameterGroups::checkUse(ArrayRef<ir::VariableOp> trained, EmitError emitError) const {
  auto names =
      llvm::map_to_vector(trained, [](ir::VariableOp variable) { return variable.getSymName().str(); });
  for (const Group &group : groups_) {
    if (group.isOptional)
      continue;
    for (const auto &[text, pattern] : group.patterns)
      if (llvm::none_of(names, [&](const std::string &name) { return pattern.match(name); }))
        return emitError() << "group \"" << text << "\" matches no variable that is trained: the nearest is '"
                           << nearestName(text, {names.begin(), names.end()}) << "'";
    if (llvm::none_of(names, [&](const std::string &name) { return find(name) == &group; }))
      return emitError() << "group \"" << group.text
                         << "\" matches no variable that a group before it does not: put it first";
  }
  return success();
}

const ParameterGroups::Group *ParameterGroups::find(StringRef name) const {
  const Group *group = llvm::find_if(groups_, [&](const Group &group) { return group.matches(name); });
  return group == groups_.end() ? nullptr : group;
}

Optimizer ParameterGroups::optimizerOf(ir::VariableOp variable) const {
  const Group *group = find(variable.getFirstName());
  return optimizer_.forVariable(variable.getWholeType(), group ? group->numbers : SpecNumbers());
}

size_t ParameterGroups::numberOf(ir::VariableOp variable) const {
  const Group *group = find(variable.getFirstName());
  return group ? group - groups_.begin() + 1 : 0;
}

} // namespace gpuc
