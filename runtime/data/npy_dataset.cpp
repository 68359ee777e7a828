#include <cstring>

#include "runtime/data/formats.h"
#include "runtime/state/npy.h"

namespace gpuc {
namespace {

int64_t elementOf(const NpyArray& array, int64_t element) {
  return integerAt(array.data.data(), array.spec.type, element);
}

class NpyDataset : public Dataset {
 public:
  NpyDataset(std::vector<DatasetField> fields, std::vector<NpyArray> arrays, int64_t size)
      : Dataset(size, std::move(fields)), arrays_(std::move(arrays)) {}

  Status copySample(int64_t row, size_t field, std::byte* destination) const override {
    const TensorSpec& sample = fields()[field].sample;
    const NpyArray& array = arrays_[field];
    const int64_t count = sample.elementCount(), bytes = sample.sizeBytes();
    if (sample.type == array.spec.type)
      std::memcpy(destination, array.data.data() + row * bytes, static_cast<size_t>(bytes));
    else
      for (int64_t i = 0; i < count; ++i)
        storeInteger(destination, sample.type, i, elementOf(array, row * count + i));
    return okStatus();
  }

 private:
  std::vector<NpyArray> arrays_;  // arrays_[i] : (size, …fields()[i].sample.shape)
};

Status checkCount(const NpyArray& array, const NpyArray& first) {
  if (array.spec.shape.empty())
    return Status::error(array.spec.name + ": holds a single value, expected samples along the first extent");
  if (array.spec.shape[0] == 0) return Status::error(array.spec.name + ": has no samples");
  if (array.spec.shape[0] != first.spec.shape[0])
    return errorf("%s has %lld samples, but %s has %lld", first.spec.name.c_str(),
                  static_cast<long long>(first.spec.shape[0]), array.spec.name.c_str(),
                  static_cast<long long>(array.spec.shape[0]));
  return okStatus();
}

/// The type in which the field is served. Integers of another width are those that the input wants, which
/// they must fit into.
Result<DataType> servedType(const std::string& name, const NpyArray& array,
                            std::span<const InputSpec> inputs) {
  const DataType type = array.spec.type;
  const InputSpec* input = findInput(inputs, name);
  if (!input || !isInteger(type) || !isInteger(input->tensor.type)) return type;
  const DataType wanted = input->tensor.type;
  const int64_t per_sample = array.spec.elementCount() / array.spec.shape[0];
  for (int64_t i = 0; wanted != type && i < array.spec.elementCount(); ++i)
    if (int64_t value = elementOf(array, i); !fitsInto(wanted, value))
      return errorf("%s: sample %lld has %s = %lld, which does not fit into %s, what the plan's input takes",
                    array.spec.name.c_str(), static_cast<long long>(i / per_sample), name.c_str(),
                    static_cast<long long>(value), nameOf(wanted));
  return wanted;
}

}  // namespace

Result<std::unique_ptr<Dataset>> openNpyDataset(const std::vector<std::pair<std::string, std::string>>& files,
                                                std::span<const InputSpec> inputs) {
  std::vector<DatasetField> fields;
  std::vector<NpyArray> arrays;
  for (const auto& [name, path] : files) {
    for (const DatasetField& field : fields)
      if (field.sample.name == name)
        return Status::error("npy data: field " + name + " is given twice, by " + field.source + " and " +
                             path);
    GPUC_ASSIGN_OR_RETURN(NpyArray array, readNpy(path));
    arrays.push_back(std::move(array));
    const TensorSpec& spec = arrays.back().spec;
    GPUC_RETURN_IF_ERROR(checkCount(arrays.back(), arrays.front()));
    GPUC_ASSIGN_OR_RETURN(DataType type, servedType(name, arrays.back(), inputs));
    fields.push_back({{name, type, {spec.shape.begin() + 1, spec.shape.end()}}, path});
  }
  int64_t size = arrays.front().spec.shape[0];
  return std::unique_ptr<Dataset>(new NpyDataset(std::move(fields), std::move(arrays), size));
}

}  // namespace gpuc
