//===- Module.cpp - Layers with names and parameters ------------------------===//

#include "frontend/builder/Graph.h"

using namespace mlir;

namespace gpuc::nn {

Module::Module(Module &&other)
    : name_(std::move(other.name_)), mistake_(std::move(other.mistake_)), trained_(other.trained_),
      lacksAdapter_(other.lacksAdapter_), checkpoint_(other.checkpoint_),
      children_(std::move(other.children_)) {
  for (std::unique_ptr<Module> &child : children_)
    child->parent_ = this;
}

std::string Module::path() const {
  std::string outer = parent_ ? parent_->path() : "";
  return outer.empty() ? name_ : outer + "." + name_;
}

std::string Module::mistake() const { return mistake_.empty() && parent_ ? parent_->mistake() : mistake_; }

void Module::visit(const std::function<void(Module &)> &visit) {
  visit(*this);
  for (std::unique_ptr<Module> &child : children_)
    child->visit(visit);
}

void Module::adopt(std::string name, std::unique_ptr<Module> child) {
  auto isTaken = [&](const std::unique_ptr<Module> &other) { return other->name_ == name; };
  if (name.empty() || name.find_first_of("./\n\"") != std::string::npos)
    mistake_ =
        "a module cannot be named \"" + name + "\": names are not empty and hold no dot, slash or quote";
  else if (llvm::any_of(children_, isTaken))
    mistake_ = "two modules are named " + name + "; their parameters would be one";
  child->name_ = std::move(name);
  child->parent_ = this;
  children_.push_back(std::move(child));
}

Tensor Module::parameter(const Tensor &user, const std::string &name, const Shape &shape,
                         const Initializer &initializer) {
  if (!user.graph())
    return {};
  return user.graph()->parameter(this, pathTo(name), shape, initializer);
}

std::string Module::pathTo(const std::string &name) const {
  std::string outer = path();
  return outer.empty() ? name : outer + "." + name;
}

Tensor Module::statistic(const Tensor &user, const std::string &name, const Shape &shape, DataType type,
                         const Initializer &initializer) {
  if (!user.graph())
    return {};
  detail::Graph &graph = *user.graph();
  return graph.variable(this, pathTo(name), graph.tensorType(shape, type), initializer, "statistic");
}

void Module::assign(const std::string &name, const Tensor &value) {
  if (value.graph() && value.graph()->usable("assign", {&value}))
    value.graph()->emit<ir::AssignOp>(FlatSymbolRefAttr::get(&value.graph()->context, pathTo(name)),
                                      detail::Graph::unwrap(value));
}

Tensor Module::call(const Tensor &x, const std::function<Tensor()> &forward) {
  if (!x.graph())
    return {};
  detail::LayerScope scope(*x.graph(), path(), describe());
  if (std::string wrong = mistake(); !wrong.empty())
    return x.graph()->fail(wrong);
  if (!x.graph()->usable("a layer", {&x}))
    return {};
  if (checkpoint_)
    x.graph()->checkpoint(path());
  Tensor y = forward();
  if (!y.valid())
    return x.graph()->fail("forward returns an empty tensor"); // kept only if nothing else failed before
  scope.setOutput(y);
  return y;
}

Tensor Layer::operator()(const Tensor &x) {
  return call(x, [&] { return forward(x); });
}

void Sequential::append(NamedLayer layer) {
  layers_.push_back(layer.layer.get());
  adopt(std::move(layer.name), std::move(layer.layer));
}

Tensor Sequential::forward(const Tensor &x) {
  Tensor y = x;
  for (Layer *layer : layers_)
    y = (*layer)(y);
  return y;
}

} // namespace gpuc::nn
