// What a loader reads from: samples that can be had in any order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/integer_range.h"
#include "runtime/base/status.h"
#include "runtime/base/tensor_spec.h"

namespace gpuc {

/// An input of a plan, as a data set has to serve it.
struct InputSpec {
  TensorSpec tensor;  // with the batch as the first extent: x : 64x1x28x28xui8
  int64_t range = 0;  // values lie in [0, range): classes or vocabulary; 0: any value
  // A value besides those, which marks a label that is left out; 0, a value of the range: there is none.
  int64_t ignored = 0;
};

/// The input of this name, or null.
inline const InputSpec* findInput(std::span<const InputSpec> inputs, const std::string& name) {
  for (const InputSpec& input : inputs)
    if (input.tensor.name == name) return &input;
  return nullptr;
}

/// The type of labels that a data set makes itself: i32, or i64 for an input that wants it.
inline DataType labelType(std::span<const InputSpec> inputs) {
  const InputSpec* labels = findInput(inputs, "labels");
  return labels && labels->tensor.type == DataType::i64 ? DataType::i64 : DataType::i32;
}

/// One field of a data set.
struct DatasetField {
  TensorSpec sample;      // of one sample, without the batch: x : 28x28xui8
  std::string source;     // where it comes from, for messages: a file's path
  bool may_idle = false;  // not an error if no input of the plan takes it
};

/// `size()` samples of the same fields. Immutable once opened; any number of threads may read at once.
class Dataset {
 public:
  Dataset(int64_t size, std::vector<DatasetField> fields) : size_(size), fields_(std::move(fields)) {}
  virtual ~Dataset() = default;

  int64_t size() const { return size_; }
  std::span<const DatasetField> fields() const { return fields_; }

  /// The names of the classes that its labels number; none where they have no names.
  virtual std::span<const std::string> classes() const { return {}; }

  /// Copies samples `rows` (each in [0, size())) of one field side by side to `destination`, which has room
  /// for rows.size() samples. Allocates nothing.
  Status copyRows(std::span<const int64_t> rows, size_t field, std::byte* destination) const {
    const int64_t sample_bytes = fields_[field].sample.sizeBytes();
    for (int64_t row : rows) {
      GPUC_RETURN_IF_ERROR(copySample(row, field, destination));
      destination += sample_bytes;
    }
    return okStatus();
  }

 protected:
  virtual Status copySample(int64_t row, size_t field, std::byte* destination) const = 0;

 private:
  int64_t size_;
  std::vector<DatasetField> fields_;
};

}  // namespace gpuc
