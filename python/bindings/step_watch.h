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
  /// `tensors`: (name, tensor, address or None, requires_grad) of each; `rates`: [group, variable, what was
  /// written last]; `numbers`: (group, [(key, value)]) of each group of `optimizer`, which may be None.
  StepWatch(const TensorExchange& exchange, const nanobind::list& tensors, const nanobind::list& rates,
            const nanobind::list& numbers, const nanobind::object& optimizer)
      : exchange_(&exchange), rates_(rates), numbers_(numbers), optimizer_(optimizer) {
    for (nanobind::handle entry : tensors) {
      const nanobind::object address = entry[2];
      Watched watched{entry[1], std::nullopt, entry[3]};
      if (!address.is_none()) watched.address = nanobind::cast<uintptr_t>(address);
      tensors_.push_back(std::move(watched));
    }
  }

  /// Whether all rates are what was written last.
  bool areRatesWritten() const {
    for (nanobind::handle entry : rates_)
      if (!isWritten(entry.ptr())) return false;
    return true;
  }

  /// Whether the tensors are what they were.
  bool areTensorsAsTheyWere() const {
    for (const Watched& watched : tensors_)
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
    for (const Watched& watched : tensors_) {
      Py_VISIT(watched.tensor.ptr());
      Py_VISIT(watched.requires_grad.ptr());
    }
    for (PyObject* held : {rates_.ptr(), numbers_.ptr(), optimizer_.ptr()}) Py_VISIT(held);
    return 0;
  }

 private:
  struct Watched {
    nanobind::object tensor;
    std::optional<uintptr_t> address;
    nanobind::object requires_grad;
  };

  bool isWritten(PyObject* entry) const {
    PyObject* rate = PyDict_GetItem(PyList_GET_ITEM(entry, 0), lr_.ptr());
    PyObject* last = PyList_GET_ITEM(entry, 2);
    return rate && PyFloat_CheckExact(rate) && PyFloat_CheckExact(last) &&
           PyFloat_AS_DOUBLE(rate) == PyFloat_AS_DOUBLE(last);
  }

  bool isAsItWas(const Watched& watched) const {
    nanobind::dlpack::dltensor seen;
    if (watched.address && (!exchange_->see(watched.tensor.ptr(), seen) ||
                            reinterpret_cast<uintptr_t>(addressOf(seen)) != *watched.address))
      return false;
    return nanobind::getattr(watched.tensor, requires_grad_).is(watched.requires_grad);
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
  std::vector<Watched> tensors_;
  nanobind::list rates_, numbers_;
  nanobind::object optimizer_;
  // Names, made once.
  nanobind::str lr_ = nanobind::str("lr"), requires_grad_ = nanobind::str("requires_grad"),
                param_groups_ = nanobind::str("param_groups");
};

}  // namespace gpuc
