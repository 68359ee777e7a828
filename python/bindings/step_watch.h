// What a user may change between two steps of a module, and a compiled step would not notice.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>
#include <utility>
#include <vector>

#include "python/bindings/exchange.h"

namespace gpuc {

/// What a dictionary had, by identity: nothing but its own memory is read to see that it still has that.
class DictSnapshot {
 public:
  explicit DictSnapshot(PyObject* dict) {
    PyObject *key, *value;
    for (Py_ssize_t at = 0; PyDict_Next(dict, &at, &key, &value);)
      entries_.emplace_back(nanobind::borrow(key), nanobind::borrow(value));
  }

  bool isOf(PyObject* dict) const {
    if (PyDict_GET_SIZE(dict) != static_cast<Py_ssize_t>(entries_.size())) return false;
    PyObject *key, *value;
    size_t i = 0;
    for (Py_ssize_t at = 0; PyDict_Next(dict, &at, &key, &value); ++i)
      if (entries_[i].first.ptr() != key || entries_[i].second.ptr() != value) return false;
    return true;
  }

  int traverse(visitproc visit, void* arg) const {
    for (const auto& [key, value] : entries_) {
      Py_VISIT(key.ptr());
      Py_VISIT(value.ptr());
    }
    return 0;
  }

 private:
  std::vector<std::pair<nanobind::object, nanobind::object>> entries_;
};

/// Looks whether something has changed, without a call of Python's; what that is, gpuc/step.py says. The step
/// has emptied the caches of what is looked at here, so that what counts is how many places that are.
class StepWatch {
 public:
  /// `watched`: of each tensor and module of `net` (name, object, a tensor's address or None, the name of an
  /// attribute, its value), of which `each_time` are looked at each `period` steps, the next in turn;
  /// `rates`: [group, key, index in that or None, what was written last, variable] of each number that may
  /// change; `numbers`: (group, [(key, value)]) of each group of `optimizer`, which may be None.
  StepWatch(const TensorExchange& exchange, const nanobind::object& net, const nanobind::list& watched,
            size_t each_time, size_t period, const nanobind::list& rates, const nanobind::list& numbers,
            const nanobind::object& optimizer)
      : exchange_(&exchange),
        each_time_(each_time),
        period_(period),
        net_(net),
        of_net_(nanobind::getattr(net, "__dict__")),
        rates_(rates),
        numbers_(numbers),
        optimizer_(optimizer),
        state_(optimizer.is_none() ? optimizer : nanobind::getattr(optimizer, "state")),
        groups_(numbers.size()) {
    for (nanobind::handle entry : watched) {
      const nanobind::object address = entry[2];
      Watched each{entry[1], std::nullopt, entry[3], entry[4]};
      if (!address.is_none()) each.address = nanobind::cast<uintptr_t>(address);
      watched_.push_back(std::move(each));
    }
  }

  bool isTraining() const {
    PyObject* own = PyDict_GetItem(of_net_.ptr(), training_.ptr());
    return own ? own == Py_True : nanobind::getattr(net_, training_).ptr() == Py_True;
  }

  /// Whether all rates, and what else may change, are what was written last.
  bool areRatesWritten() const {
    for (nanobind::handle entry : rates_)
      if (!isWritten(entry.ptr())) return false;
    return true;
  }

  /// Whether all tensors lie where they did.
  bool areAllWhereTheyWere() const {
    for (const Watched& watched : watched_)
      if (!isWhereItWas(watched)) return false;
    return true;
  }

  /// Whether tensors and modules whose turn it is are what they were.
  bool areSomeAsTheyWere(size_t step) const {
    if (step % period_ != 0) return true;
    for (size_t i = 0; i < each_time_ && i < watched_.size(); ++i)
      if (!isAsItWas(watched_[(step / period_ * each_time_ + i) % watched_.size()])) return false;
    return true;
  }

  /// Whether the optimizer has the state and as many groups as it had, and one of them, another in each step,
  /// has its numbers.
  bool areGroupsAsTheyWere(size_t step) {
    const size_t groups = numbers_.size();
    return groups == 0 || (hasItsNumbers(step % groups) &&
                           nanobind::len(nanobind::getattr(optimizer_, param_groups_)) == groups &&
                           nanobind::getattr(optimizer_, name_of_state_).is(state_));
  }

  /// For Python's garbage collector: the optimizer's hooks know the step that has this.
  int traverse(visitproc visit, void* arg) const {
    for (const Watched& watched : watched_) {
      Py_VISIT(watched.object.ptr());
      Py_VISIT(watched.attribute.ptr());
      Py_VISIT(watched.value.ptr());
    }
    for (const std::optional<DictSnapshot>& group : groups_)
      if (int found = group ? group->traverse(visit, arg) : 0) return found;
    for (PyObject* held :
         {net_.ptr(), of_net_.ptr(), rates_.ptr(), numbers_.ptr(), optimizer_.ptr(), state_.ptr()})
      Py_VISIT(held);
    return 0;
  }

 private:
  struct Watched {
    nanobind::object object;
    std::optional<uintptr_t> address;
    nanobind::object attribute, value;
  };

  static bool isWritten(PyObject* entry) {
    PyObject* number = PyDict_GetItem(PyList_GET_ITEM(entry, 0), PyList_GET_ITEM(entry, 1));
    if (PyList_GET_ITEM(entry, 2) != Py_None) number = itemOf(number, PyList_GET_ITEM(entry, 2));
    PyObject* last = PyList_GET_ITEM(entry, 3);
    if (!number || !PyFloat_CheckExact(last)) return false;
    if (PyFloat_CheckExact(number)) return PyFloat_AS_DOUBLE(number) == PyFloat_AS_DOUBLE(last);
    return PyLong_CheckExact(number) && PyLong_AsDouble(number) == PyFloat_AS_DOUBLE(last);
  }

  /// Of a pair, as betas are; null if it is none.
  static PyObject* itemOf(PyObject* pair, PyObject* index) {
    if (!pair || !(PyTuple_CheckExact(pair) || PyList_CheckExact(pair))) return nullptr;
    const Py_ssize_t at = PyLong_AsSsize_t(index);
    return at < PySequence_Fast_GET_SIZE(pair) ? PySequence_Fast_GET_ITEM(pair, at) : nullptr;
  }

  bool isWhereItWas(const Watched& watched) const {
    nanobind::dlpack::dltensor seen;
    return !watched.address || (exchange_->see(watched.object.ptr(), seen) &&
                                reinterpret_cast<uintptr_t>(addressOf(seen)) == *watched.address);
  }
  bool isAsItWas(const Watched& watched) const {
    return isWhereItWas(watched) && nanobind::getattr(watched.object, watched.attribute).is(watched.value);
  }

  bool hasItsNumbers(size_t index) {
    PyObject* group = PyList_GET_ITEM(numbers_.ptr(), index);
    PyObject* dict = PyTuple_GET_ITEM(group, 0);
    if (groups_[index] && groups_[index]->isOf(dict)) return true;
    if (!hasNumbers(dict, PyTuple_GET_ITEM(group, 1))) return false;
    groups_[index].emplace(dict);
    return true;
  }

  static bool hasNumbers(PyObject* dict, PyObject* numbers) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(numbers); ++i) {
      PyObject* pair = PyList_GET_ITEM(numbers, i);
      PyObject* value = PyDict_GetItem(dict, PyTuple_GET_ITEM(pair, 0));
      if (!value || PyObject_RichCompareBool(value, PyTuple_GET_ITEM(pair, 1), Py_EQ) != 1)
        return PyErr_Clear(), false;
    }
    return true;
  }

  const TensorExchange* exchange_;
  size_t each_time_, period_;
  std::vector<Watched> watched_;
  nanobind::object net_, of_net_;
  nanobind::list rates_, numbers_;
  nanobind::object optimizer_, state_;
  std::vector<std::optional<DictSnapshot>> groups_;  // when they last had their numbers
  // Names, made once.
  nanobind::str training_ = nanobind::str("training"), param_groups_ = nanobind::str("param_groups"),
                name_of_state_ = nanobind::str("state");
};

}  // namespace gpuc
