#include <cstring>

#include "runtime/base/half.h"
#include "runtime/base/philox.h"
#include "runtime/data/formats.h"

namespace gpuc {
namespace {

constexpr uint32_t kDomain = 0x73796e00;  // "syn\0", to which the field's number is added

/// Values that one value of the type can take, starting at 0; the range of integers without a range.
int64_t defaultRange(DataType type) {
  if (type == DataType::ui8) return 256;
  if (type == DataType::i1) return 2;
  return 128;
}

int64_t rangeOf(const InputSpec& input) {
  return input.range > 0 ? input.range : defaultRange(input.tensor.type);
}

/// Four bytes have the sum 510 in the mean and the variance 4 * (256^2 - 1) / 12 = 147.8^2.
float normalLike(uint32_t word) {
  int sum = static_cast<int>((word & 0xff) + (word >> 8 & 0xff) + (word >> 16 & 0xff) + (word >> 24));
  return static_cast<float>(sum - 510) * (1.0f / 147.80054f);
}

template <typename T>
void store(std::byte* destination, int64_t element, T value) {
  std::memcpy(destination + element * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
}

void storeElement(std::byte* destination, int64_t element, DataType type, int64_t range, uint32_t word) {
  switch (type) {
    case DataType::f64:
      return store(destination, element, static_cast<double>(normalLike(word)));
    case DataType::f32:
      return store(destination, element, normalLike(word));
    case DataType::f16:
      return store(destination, element, floatToHalf(normalLike(word)));
    case DataType::bf16:
      return store(destination, element, floatToBfloat16(normalLike(word)));
    default:
      // 32 bits stretched to 64, so that one rule serves every range.
      return storeInteger(
          destination, type, element,
          static_cast<int64_t>(uniformBelow(uint64_t{word} << 32 | word, static_cast<uint64_t>(range))));
  }
}

/// Whether integers of [0, range) can be told apart.
bool holdsRange(DataType type, int64_t range) {
  return type == DataType::i1 ? range <= 2 : fitsInto(type, range - 1);
}

std::vector<DatasetField> fieldsOf(std::span<const InputSpec> inputs) {
  std::vector<DatasetField> fields;
  for (const InputSpec& input : inputs) {
    TensorSpec sample = input.tensor;
    sample.shape.erase(sample.shape.begin());
    fields.push_back({std::move(sample), "synthetic data"});
  }
  return fields;
}

class SyntheticDataset : public Dataset {
 public:
  SyntheticDataset(std::span<const InputSpec> inputs, int64_t size, uint64_t seed)
      : Dataset(size, fieldsOf(inputs)), inputs_(inputs.begin(), inputs.end()), seed_(seed) {}

  Status copySample(int64_t row, size_t field, std::byte* destination) const override {
    fillSyntheticSample(inputs_[field], field, seed_, row, destination);
    return okStatus();
  }

 private:
  std::vector<InputSpec> inputs_;
  uint64_t seed_;
};

}  // namespace

void fillSyntheticSample(const InputSpec& input, size_t field, uint64_t seed, int64_t index,
                         std::byte* destination) {
  int64_t elements = 1;
  for (size_t i = 1; i < input.tensor.shape.size(); ++i) elements *= input.tensor.shape[i];
  int64_t range = rangeOf(input);
  uint64_t sample = static_cast<uint64_t>(index);
  for (int64_t first = 0; first < elements; first += 4) {
    PhiloxCounter words =
        philox4x32({static_cast<uint32_t>(first / 4), static_cast<uint32_t>(sample),
                    static_cast<uint32_t>(sample >> 32), kDomain + static_cast<uint32_t>(field)},
                   philoxKey(seed));
    for (int64_t i = first; i < elements && i < first + 4; ++i)
      storeElement(destination, i, input.tensor.type, range, words[static_cast<size_t>(i - first)]);
  }
}

Result<std::unique_ptr<Dataset>> makeSyntheticDataset(std::span<const InputSpec> inputs, int64_t size,
                                                      uint64_t seed) {
  if (size < 1) return errorf("synthetic data: size=%lld, expected at least 1", static_cast<long long>(size));
  for (const InputSpec& input : inputs) {
    if (input.tensor.shape.empty())
      return Status::error("input " + input.tensor.name + ": " + input.tensor.str() +
                           " has no batch extent to be fed by");
    DataType type = input.tensor.type;
    if (input.range > 0 && !isFloat(type) && !holdsRange(type, input.range))
      return errorf("input %s: a range of %lld does not fit into %s", input.tensor.name.c_str(),
                    static_cast<long long>(input.range), nameOf(type));
  }
  return std::unique_ptr<Dataset>(new SyntheticDataset(inputs, size, seed));
}

}  // namespace gpuc
