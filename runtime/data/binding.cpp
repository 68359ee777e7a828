#include "runtime/data/binding.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>

#include "runtime/base/integer_range.h"
#include "runtime/state/npy.h"

namespace gpuc {
namespace {

template <typename List, typename NameOf>
std::string joinNames(const List& list, NameOf name_of) {
  std::string text;
  for (const auto& item : list) text += (text.empty() ? "" : ", ") + name_of(item);
  return text.empty() ? "none" : text;
}

std::string fieldNames(const Dataset& dataset) {
  return joinNames(dataset.fields(), [](const DatasetField& field) { return field.sample.name; });
}

std::string inputNames(std::span<const InputSpec> inputs) {
  return joinNames(inputs, [](const InputSpec& input) { return input.tensor.name; });
}

std::optional<size_t> findField(const Dataset& dataset, const std::string& name) {
  for (size_t i = 0; i < dataset.fields().size(); ++i)
    if (dataset.fields()[i].sample.name == name) return i;
  return std::nullopt;
}

/// Whether one shape is the other with extents in a row multiplied, but for extents of 1: 28x28 and 784 or
/// 1x28x28, not 28x28x3 and 3x28x28. Both hold as many elements.
bool keepsOrder(std::vector<int64_t> a, std::vector<int64_t> b) {
  std::erase(a, 1);
  std::erase(b, 1);
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const size_t first_left = i, first_right = j;
    int64_t left = a[i++], right = b[j++];
    while (left != right) {
      if (left < right ? i == a.size() : j == b.size()) return false;
      if (left < right)
        left *= a[i++];
      else
        right *= b[j++];
    }
    if (i - first_left > 1 && j - first_right > 1) return false;
  }
  return true;
}

Status checkFit(const TensorSpec& input, const DatasetField& field) {
  if (input.shape.empty() || input.shape[0] <= 0)
    return Status::error("input " + input.name + ": " + input.str() + " has no batch extent to be fed by");
  TensorSpec sample{input.name, input.type, {input.shape.begin() + 1, input.shape.end()}};
  if (sample.type != field.sample.type)
    return errorf("%s: %s is %s, but the plan's input wants %s%s", field.source.c_str(), input.name.c_str(),
                  nameOf(field.sample.type), nameOf(sample.type), npyCure(sample.type).c_str());
  if (sample.elementCount() != field.sample.elementCount())
    return errorf("%s: a sample of %s is %s (%lld elements), but the plan's input wants %s (%lld elements)",
                  field.source.c_str(), input.name.c_str(), field.sample.str().c_str(),
                  static_cast<long long>(field.sample.elementCount()), sample.str().c_str(),
                  static_cast<long long>(sample.elementCount()));
  if (!keepsOrder(field.sample.shape, sample.shape))
    return errorf(
        "%s: a sample of %s is %s, but the plan's input wants %s, whose elements stand in another order: "
        "transpose the data, or give them that shape",
        field.source.c_str(), input.name.c_str(), field.sample.str().c_str(), sample.str().c_str());
  return okStatus();
}

/// Labels below 0 are meant to be left out, which the model must know of.
std::string whatIsIgnored(int64_t value, int64_t limit, int64_t ignored) {
  if (hasIgnored(limit, ignored)) return " and is not what the plan ignores, " + std::to_string(ignored);
  if (value >= 0) return "";
  return ": a plan that is to ignore it comes of a model whose loss says so, as by gpuc-import-onnx "
         "--loss=cross_entropy:ignore_index=" +
         std::to_string(value);
}

Status outsideRange(const DatasetField& field, int64_t sample, int64_t value, int64_t limit,
                    int64_t ignored) {
  return errorf("%s: sample %lld has %s = %lld, which lies outside the plan's range [0, %lld)%s",
                field.source.c_str(), static_cast<long long>(sample), field.sample.name.c_str(),
                static_cast<long long>(value), static_cast<long long>(limit),
                whatIsIgnored(value, limit, ignored).c_str());
}

}  // namespace

Result<std::vector<size_t>> bindFields(const Dataset& dataset, std::span<const InputSpec> inputs) {
  std::vector<size_t> binding;
  for (const InputSpec& input : inputs) {
    std::optional<size_t> field = findField(dataset, input.tensor.name);
    if (!field)
      return Status::error("the data has no field for the plan's input " + input.tensor.name + ": " +
                           input.tensor.str() + " (fields: " + fieldNames(dataset) + ")");
    GPUC_RETURN_IF_ERROR(checkFit(input.tensor, dataset.fields()[*field]));
    binding.push_back(*field);
  }
  for (size_t i = 0; i < dataset.fields().size(); ++i) {
    const DatasetField& field = dataset.fields()[i];
    if (!field.may_idle && std::find(binding.begin(), binding.end(), i) == binding.end())
      return Status::error(field.source + ": the plan has no input " + field.sample.name +
                           " (inputs: " + inputNames(inputs) + ")");
  }
  return binding;
}

Result<uint32_t> sampleChecksum(const Dataset& dataset, std::span<const size_t> fields) {
  constexpr int64_t kMostSamples = 64;
  int64_t count = std::min(kMostSamples, dataset.size());
  std::vector<int64_t> rows;
  // Not i * size / count, which may not fit.
  for (int64_t i = 0; i < count; ++i)
    rows.push_back(dataset.size() / count * i + dataset.size() % count * i / count);
  uLong checksum = ::crc32(0, nullptr, 0);
  for (size_t field : fields) {
    std::vector<std::byte> values(static_cast<size_t>(count * dataset.fields()[field].sample.sizeBytes()));
    GPUC_RETURN_IF_ERROR(dataset.copyRows(rows, field, values.data()));
    checksum = ::crc32_z(checksum, reinterpret_cast<const Bytef*>(values.data()), values.size());
  }
  return static_cast<uint32_t>(checksum);
}

Status checkRange(const Dataset& dataset, size_t field_index, int64_t limit, int64_t ignored) {
  const DatasetField& field = dataset.fields()[field_index];
  if (isFloat(field.sample.type))
    return errorf("%s: %s is %s, but values in [0, %lld) are integers", field.source.c_str(),
                  field.sample.name.c_str(), nameOf(field.sample.type), static_cast<long long>(limit));
  int64_t per_sample = field.sample.elementCount();
  // About 1 MiB at a time, so that a large data set does not double.
  int64_t chunk = std::max<int64_t>(1, (1 << 20) / std::max<int64_t>(1, field.sample.sizeBytes()));
  std::vector<int64_t> rows;
  std::vector<std::byte> values(static_cast<size_t>(chunk * field.sample.sizeBytes()));
  for (int64_t first = 0; first < dataset.size(); first += chunk) {
    rows.resize(static_cast<size_t>(std::min(chunk, dataset.size() - first)));
    std::iota(rows.begin(), rows.end(), first);
    GPUC_RETURN_IF_ERROR(dataset.copyRows(rows, field_index, values.data()));
    const int64_t count = static_cast<int64_t>(rows.size()) * per_sample;
    const int64_t outside = firstOutside(values.data(), field.sample.type, count, limit, ignored);
    if (outside >= 0)
      return outsideRange(field, first + outside / per_sample,
                          integerAt(values.data(), field.sample.type, outside), limit, ignored);
  }
  return okStatus();
}

}  // namespace gpuc
