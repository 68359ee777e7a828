// NumPy's .npy files, versions 1.0 to 3.0:
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/status.h"
#include "runtime/base/tensor_spec.h"
#include "runtime/state/mapped_file.h"

namespace gpuc {

/// An array in C order; `data` points into the file or the bytes that it was parsed from.
struct NpyArray {
  TensorSpec spec;        // spec.name is the file's name
  std::string_view data;  // spec.sizeBytes() bytes, perhaps not aligned to the element
  MappedFile file;        // keeps `data` alive; empty if parsed from bytes
};

/// Reads f8 f4 f2 i8 i4 i1 u1 b1, little-endian, C order, as f64 f32 f16 i64 i32 i8 ui8 i1. Errors begin
/// with `name` and say how to convert what is valid for NumPy but not for gpuc (big-endian, Fortran order,
/// other types), and both sizes if the file is cut short or too long.
Result<NpyArray> parseNpy(std::string_view bytes, const std::string& name);
Result<NpyArray> readNpy(const std::string& path);

/// "; save a.astype('<i4')", by which an array becomes one of `type`; "" for bf16, which NumPy does not know.
std::string npyCure(DataType type);

/// Writes version 1.0, replacing `path` atomically. bf16, which NumPy does not know, becomes f32 (exactly),
/// i1 becomes bool.
Status writeNpy(const std::string& path, const TensorSpec& spec, const void* data);

/// The bytes that writeNpy writes.
std::string npyBytes(const TensorSpec& spec, const void* data);

}  // namespace gpuc
