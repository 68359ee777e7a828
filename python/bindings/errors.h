// gpuc's errors as Python's. The exceptions themselves are defined in gpuc/errors.py.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <utility>

#include "runtime/base/status.h"

namespace gpuc {

/// Raises gpuc.errors.`type`; never returns.
[[noreturn]] inline void raise(const char* type, const std::string& message) {
  nanobind::object error = nanobind::module_::import_("gpuc.errors").attr(type);
  PyErr_SetString(error.ptr(), message.c_str());
  throw nanobind::python_error();
}

/// gpuc.Error of one gpuc.errors.Problem, which is made of `parts`.
[[noreturn]] inline void raiseProblem(const std::string& message, const nanobind::tuple& parts) {
  nanobind::object errors = nanobind::module_::import_("gpuc.errors");
  nanobind::list problems;
  problems.append(errors.attr("Problem")(*parts));
  nanobind::object error = errors.attr("Error")(message, problems);
  PyErr_SetObject(errors.attr("Error").ptr(), error.ptr());
  throw nanobind::python_error();
}

inline void check(const Status& status) {
  if (!status.ok()) raise("Error", status.message());
}

template <typename T>
T check(Result<T> result) {
  check(result.status());
  return *std::move(result);
}

}  // namespace gpuc
