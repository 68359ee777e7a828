// step(x, y) of Python, told by C alone where all is as it was compiled.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <span>
#include <vector>

#include "python/bindings/exchange.h"
#include "python/bindings/session.h"
#include "python/bindings/step_watch.h"

namespace gpuc {

/// The step of a module where all is as it was compiled.
class PyQuickStep {
 public:
  /// `type`: of the tensors that are taken, which has the exchange API; the rest as StepWatch has it.
  PyQuickStep(nb::handle session, nb::handle type, const nb::object& net, const nb::list& watched,
              size_t each_time, size_t period, const nb::list& rates, const nb::list& numbers,
              const nb::object& optimizer)
      : owner_(nb::borrow(session)),
        session_(nb::cast<PySession&>(session)),
        step_(check(session_.session().program("train_step"))),
        type_(nb::borrow(type)),
        exchange_(TensorExchange::of(type)) {
    if (!exchange_) raise("Error", "the type of tensors has no exchange API of DLPack 1");
    is_negated_ = type_.attr("is_neg");
    period_ = period;
    watch_.emplace(*exchange_, net, watched, each_time, period, rates, numbers, optimizer);
    for (const InputInfo& input : inputs()) {
      types_.push_back(dtypeOf(input.spec.type));
      views_.emplace_back(nullptr, input.spec);
    }
  }

  static bool serves(nb::handle type) { return TensorExchange::of(type) != nullptr; }

  /// The mean loss of an update; None, and nothing has run, if it is the first or comes after 1, 2, 4, 8, …
  /// others, or must_look, when Python looks at everything, or something is not as it was: the batch, rates
  /// and numbers of the optimizer, the module's mode, or the tensors and modules whose turn it is.
  nb::object call(std::span<PyObject* const> batch) {
    const PySession::Turn turn = session_.takeTurn();
    if ((steps & (steps - 1)) == 0 || must_look || !watch_ || !takesBatch(batch) || !watch_->isTraining() ||
        !watch_->areRatesWritten() || !watch_->areGroupsAsTheyWere(steps) ||
        !watch_->areSomeAsTheyWere(steps))
      return nb::none();
    ++steps;
    return nb::float_(session_.meanOf(step_, views_));
  }
  nb::object callTuple(const nb::tuple& batch) {
    return call({PySequence_Fast_ITEMS(batch.ptr()), batch.size()});
  }

  /// Whether all tensors of the module lie where they did.
  bool isAllWhereItWas() const { return watch_ && watch_->areAllWhereTheyWere(); }

  size_t steps = 0;           // that were made, by this or in another way
  bool must_look = false;     // A layer was given something else.
  bool were_negated = false;  // a batch, which may be one of Python's

  static int traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    if (!nb::inst_ready(self)) return 0;
    const auto* step = nb::inst_ptr<PyQuickStep>(self);
    Py_VISIT(step->owner_.ptr());
    Py_VISIT(step->type_.ptr());
    Py_VISIT(step->is_negated_.ptr());
    return step->watch_ ? step->watch_->traverse(visit, arg) : 0;
  }
  static int clear(PyObject* self) {
    nb::inst_ptr<PyQuickStep>(self)->watch_.reset();
    return 0;
  }

 private:
  const std::vector<InputInfo>& inputs() {
    return session_.session().plan().info().programs[step_.index].inputs;
  }

  bool takesBatch(std::span<PyObject* const> batch) {
    if (batch.size() != views_.size()) return false;
    nb::dlpack::dltensor seen;
    for (size_t i = 0; i < views_.size(); ++i) {
      if (Py_TYPE(batch[i]) != reinterpret_cast<PyTypeObject*>(type_.ptr()) ||
          !exchange_->see(batch[i], seen) || !isDense(seen, types_[i], views_[i].shape))
        return false;
      views_[i].data = addressOf(seen);
    }
    const bool isTheirTurn = were_negated || steps % period_ == 0;
    for (size_t i = 0; i < batch.size(); ++i)
      if ((isTheirTurn || views_[i].sizeBytes() == sizeOf(views_[i].type)) && isNegated(batch[i]))
        return were_negated = true, false;
    return true;
  }

  /// By a bit of torch's, which DLPack does not tell, and which takes as long to ask for as all else
  /// together. A dense tensor has it by torch._neg_view, or if it is one number (z.conj().imag has strides of
  /// two). So it is asked for now and then, and always once one had it.
  bool isNegated(PyObject* tensor) const {
    const nb::object answer = nb::steal(PyObject_CallOneArg(is_negated_.ptr(), tensor));
    if (!answer.is_valid()) PyErr_Clear();
    return answer.ptr() != Py_False;
  }

  nb::object owner_;  // of session_
  PySession& session_;
  ProgramId step_;
  nb::object type_, is_negated_;
  const TensorExchange* exchange_;
  size_t period_ = 1;
  std::optional<StepWatch> watch_;
  std::vector<nb::dlpack::dtype> types_;
  std::vector<HostTensorView> views_;  // of the batch under way
};

/// `__call__` of gpuc.step.Step: by its `_quick`, if it has one that takes the batch, else by its `_call`.
/// Plain C, since a frame of Python's costs as much as all of the quick step's looks.
class StepCall {
 public:
  /// As a method of `type`.
  static nb::object methodOf(nb::handle type) {
    static PyMethodDef method = {"__call__", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&call)),
                                 METH_FASTCALL | METH_KEYWORDS,
                                 "__call__($self, /, *args, **kwargs)\n--\n\n"
                                 "One update; returns the mean loss of the batch, a float. Of several ranks "
                                 "each has its rows of the batch."};
    PyObject* made = PyDescr_NewMethod(reinterpret_cast<PyTypeObject*>(type.ptr()), &method);
    if (!made) throw nb::python_error();
    return nb::steal(made);
  }

 private:
  static PyObject* call(PyObject* step, PyObject* const* args, Py_ssize_t count, PyObject* names) try {
    static const nb::handle quick_type = nb::type<PyQuickStep>();
    static PyObject* const quick_name = PyUnicode_InternFromString("_quick");
    static PyObject* const call_name = PyUnicode_InternFromString("_call");
    if (!names) {
      const nb::object quick = nb::getattr(step, quick_name);
      if (quick.type().is(quick_type)) {
        nb::object loss = nb::inst_ptr<PyQuickStep>(quick)->call({args, static_cast<size_t>(count)});
        if (!loss.is_none()) return loss.release().ptr();
      }
    }
    const nb::object slow = nb::getattr(step, call_name);
    return PyObject_Vectorcall(slow.ptr(), args, static_cast<size_t>(count), names);
  } catch (nb::python_error& error) {
    error.restore();
    return nullptr;
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
    return nullptr;
  }
};

}  // namespace gpuc
