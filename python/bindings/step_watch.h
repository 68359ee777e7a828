// What a user may change between two steps of a module, and a compiled step would not notice.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>
#include <vector>

#include "python/bindings/exchange.h"

namespace gpuc {

/// Looks whether something has changed, without a call of Python's; what that is, gpuc/step.py says.
class StepWatch {
 public:
  /// `watched`: of each tensor and module of `net` (name, object, a tensor's address or None, the name of an
  /// attribute, its value); `rates`: [group, variable, what was written last]; `numbers`: (group, [(key,
  /// value)]) of each group of `optimizer`, which may be None.
  StepWatch(const TensorExchange& exchange, const nanobind::object& net, const nanobind::list& watched,
            const nanobind::list& rates, const nanobind::list& numbers, const nanobind::object& optimizer)
      : exchange_(&exchange), net_(net), rates_(rates), numbers_(numbers), optimizer_(optimizer) {
    for (nanobind::handle entry : watched) {
      const nanobind::object address = entry[2];
      Watched each{entry[1], std::nullopt, entry[3], entry[4]};
      if (!address.is_none()) each.address = nanobind::cast<uintptr_t>(address);
      watched_.push_back(std::move(each));
    }
  }

  bool isTraining() const { return nanobind::getattr(net_, training_).ptr() == Py_True; }

  /// Whether all rates are what was written last.
  bool areRatesWritten() const {
    for (nanobind::handle entry : rates_)
      if (!isWritten(entry.ptr())) return false;
    return true;
  }

  /// Whether tensors and modules are what they were.
  bool areAllAsTheyWere() const {
    for (const Watched& watched : watched_)
      if (!isAsItWas(watched)) return false;
    return true;
  }

  /// Whether there are as many groups as there were, and one of them, another in each turn, has its numbers.
  bool areGroupsAsTheyWere(size_t turn) const {
    const size_t groups = numbers_.size();
    return groups == 0 || (hasItsNumbers(PyList_GET_ITEM(numbers_.ptr(), turn % groups)) &&
                           nanobind::len(nanobind::getattr(optimizer_, param_groups_)) == groups);
  }

  /// For Python's garbage collector: the optimizer's hooks know the step that has this.
  int traverse(visitproc visit, void* arg) const {
    for (const Watched& watched : watched_) {
      Py_VISIT(watched.object.ptr());
      Py_VISIT(watched.attribute.ptr());
      Py_VISIT(watched.value.ptr());
    }
    for (PyObject* held : {net_.ptr(), rates_.ptr(), numbers_.ptr(), optimizer_.ptr()}) Py_VISIT(held);
    return 0;
  }

 private:
  struct Watched {
    nanobind::object object;
    std::optional<uintptr_t> address;
    nanobind::object attribute, value;
  };

  bool isWritten(PyObject* entry) const {
    PyObject* rate = PyDict_GetItem(PyList_GET_ITEM(entry, 0), lr_.ptr());
    PyObject* last = PyList_GET_ITEM(entry, 2);
    return rate && PyFloat_CheckExact(rate) && PyFloat_CheckExact(last) &&
           PyFloat_AS_DOUBLE(rate) == PyFloat_AS_DOUBLE(last);
  }

  bool isAsItWas(const Watched& watched) const {
    nanobind::dlpack::dltensor seen;
    if (watched.address && (!exchange_->see(watched.object.ptr(), seen) ||
                            reinterpret_cast<uintptr_t>(addressOf(seen)) != *watched.address))
      return false;
    return nanobind::getattr(watched.object, watched.attribute).is(watched.value);
  }

  static bool hasItsNumbers(PyObject* group) {
    PyObject* numbers = PyTuple_GET_ITEM(group, 1);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(numbers); ++i) {
      PyObject* pair = PyList_GET_ITEM(numbers, i);
      PyObject* value = PyDict_GetItem(PyTuple_GET_ITEM(group, 0), PyTuple_GET_ITEM(pair, 0));
      if (!value || PyObject_RichCompareBool(value, PyTuple_GET_ITEM(pair, 1), Py_EQ) != 1)
        return PyErr_Clear(), false;
    }
    return true;
  }

  const TensorExchange* exchange_;
  std::vector<Watched> watched_;
  nanobind::object net_;
  nanobind::list rates_, numbers_;
  nanobind::object optimizer_;
  // Names, made once.
  nanobind::str lr_ = nanobind::str("lr"), training_ = nanobind::str("training"),
                param_groups_ = nanobind::str("param_groups");
};

}  // namespace gpuc
