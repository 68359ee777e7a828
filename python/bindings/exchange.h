// DLPack's C exchange API (https://dmlc.github.io/dlpack/latest/c_api.html, 1.3): how to see a tensor of
// another library without a call of Python's.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <span>

namespace gpuc {

/// Of a type of tensors; laid out as DLPack has it.
struct TensorExchange {
  uint32_t major, minor;
  const TensorExchange* former;  // of another version
  void* allocate;
  void* take;
  void* give;
  int (*see_it)(void* tensor, nanobind::dlpack::dltensor* seen);  // may be null
  void* stream;

  /// Null: the type has none, or none of this version.
  static const TensorExchange* of(nanobind::handle type) {
    PyObject* capsule = PyObject_GetAttrString(type.ptr(), "__dlpack_c_exchange_api__");
    if (!capsule) return PyErr_Clear(), nullptr;
    void* found = PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
    Py_DECREF(capsule);  // The type lives as long as the process, and with it what the capsule shows.
    if (!found) return PyErr_Clear(), nullptr;
    const auto* exchange = static_cast<const TensorExchange*>(found);
    while (exchange && exchange->major != 1) exchange = exchange->former;
    return exchange && exchange->see_it ? exchange : nullptr;
  }

  /// Whether `tensor`, of just that type, could be seen; `seen` is valid as long as the tensor is as it is.
  bool see(PyObject* tensor, nanobind::dlpack::dltensor& seen) const {
    if (see_it(tensor, &seen) == 0) return true;
    PyErr_Clear();
    return false;
  }
};

/// Where the elements lie, which may be nowhere if there are none.
inline std::byte* addressOf(const nanobind::dlpack::dltensor& tensor) {
  return static_cast<std::byte*>(tensor.data) + tensor.byte_offset;
}

/// Whether it lies, row-major and dense, in the host's memory, and has this type and shape.
inline bool isDense(const nanobind::dlpack::dltensor& tensor, nanobind::dlpack::dtype type,
                    std::span<const int64_t> shape) {
  if (tensor.device.device_type != nanobind::device::cpu::value || tensor.dtype != type ||
      tensor.ndim != static_cast<int32_t>(shape.size()))
    return false;
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > 0; stride *= shape[d])
    if (tensor.shape[d] != shape[d] || (tensor.strides && shape[d] != 1 && tensor.strides[d] != stride))
      return false;
  return tensor.data != nullptr;
}

}  // namespace gpuc
