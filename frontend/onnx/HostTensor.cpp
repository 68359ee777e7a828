//===- HostTensor.cpp - Arithmetic on what is known while importing ---------===//

#include "frontend/onnx/HostTensor.h"

#include "runtime/base/half.h"

#include <cmath>
#include <cstring>

namespace gpuc::onnx {
namespace {

template <typename Element> Element loadAs(const char *from) {
  Element element;
  std::memcpy(&element, from, sizeof(Element));
  return element;
}

template <typename Element> void storeAs(char *to, Element element) {
  std::memcpy(to, &element, sizeof(Element));
}

double loadNumber(DataType type, const char *from) {
  switch (type) {
  case DataType::f64:
    return loadAs<double>(from);
  case DataType::f32:
    return loadAs<float>(from);
  case DataType::f16:
    return halfToFloat(loadAs<uint16_t>(from));
  case DataType::bf16:
    return bfloat16ToFloat(loadAs<uint16_t>(from));
  default:
    return 0;
  }
}

int64_t loadInteger(DataType type, const char *from) {
  switch (type) {
  case DataType::i64:
    return loadAs<int64_t>(from);
  case DataType::i32:
    return loadAs<int32_t>(from);
  case DataType::i8:
    return loadAs<int8_t>(from);
  case DataType::ui8:
  case DataType::i1:
    return loadAs<uint8_t>(from);
  default:
    return 0;
  }
}

/// What a cast to an integer does: toward zero, saturated, NaN to 0.
int64_t cut(double value) {
  if (std::isnan(value))
    return 0;
  if (value >= 0x1p63)
    return INT64_MAX;
  return value <= -0x1p63 ? INT64_MIN : static_cast<int64_t>(value);
}

void storeInteger(DataType type, char *to, int64_t value) {
  switch (type) {
  case DataType::i64:
    return storeAs<int64_t>(to, value);
  case DataType::i32:
    return storeAs<int32_t>(to, static_cast<int32_t>(value));
  case DataType::i8:
  case DataType::ui8:
    return storeAs<uint8_t>(to, static_cast<uint8_t>(value));
  case DataType::i1:
    return storeAs<uint8_t>(to, value != 0);
  default:
    return;
  }
}

void storeNumber(DataType type, char *to, double value) {
  switch (type) {
  case DataType::f64:
    return storeAs<double>(to, value);
  case DataType::f32:
    return storeAs<float>(to, static_cast<float>(value));
  case DataType::f16:
    return storeAs<uint16_t>(to, floatToHalf(static_cast<float>(value)));
  case DataType::bf16:
    return storeAs<uint16_t>(to, floatToBfloat16(static_cast<float>(value)));
  default:
    return;
  }
}

std::shared_ptr<HostTensor> emptyTensor(DataType type, std::vector<int64_t> shape) {
  auto made = std::make_shared<HostTensor>();
  made->spec.type = type;
  made->spec.shape = std::move(shape);
  return made;
}

template <typename Element>
HostTensorPtr build(DataType type, std::vector<int64_t> shape, const std::vector<Element> &elements) {
  auto made = emptyTensor(type, std::move(shape));
  const int64_t size = sizeOf(type);
  std::string bytes(elements.size() * size, '\0');
  for (size_t i = 0; i < elements.size(); ++i) {
    if constexpr (std::is_same_v<Element, int64_t>)
      gpuc::isFloat(type) ? storeNumber(type, &bytes[i * size], static_cast<double>(elements[i]))
                          : storeInteger(type, &bytes[i * size], elements[i]);
    else
      gpuc::isFloat(type)
          ? storeNumber(type, &bytes[i * size], elements[i])
          : storeInteger(type, &bytes[i * size], type == DataType::i1 ? elements[i] != 0 : cut(elements[i]));
  }
  made->bytes = std::make_shared<const std::string>(std::move(bytes));
  return made;
}

template <typename Element, typename Load>
std::vector<Element> elementsOf(const HostTensor &tensor, Load load) {
  const int64_t size = sizeOf(tensor.spec.type);
  std::vector<Element> elements(tensor.bytes ? tensor.bytes->size() / size : 0);
  for (size_t i = 0; i < elements.size(); ++i)
    elements[i] = load(tensor.bytes->data() + i * size);
  return elements;
}

} // namespace

std::vector<int64_t> integersOf(const HostTensor &tensor) {
  const DataType type = tensor.spec.type;
  return elementsOf<int64_t>(tensor, [type](const char *from) {
    return gpuc::isFloat(type) ? cut(loadNumber(type, from)) : loadInteger(type, from);
  });
}

std::vector<double> numbersOf(const HostTensor &tensor) {
  const DataType type = tensor.spec.type;
  return elementsOf<double>(tensor, [type](const char *from) {
    return gpuc::isFloat(type) ? loadNumber(type, from) : static_cast<double>(loadInteger(type, from));
  });
}

HostTensorPtr fromIntegers(DataType type, std::vector<int64_t> shape, const std::vector<int64_t> &elements) {
  return build(type, std::move(shape), elements);
}

HostTensorPtr fromNumbers(DataType type, std::vector<int64_t> shape, const std::vector<double> &elements) {
  return build(type, std::move(shape), elements);
}

HostTensorPtr tensorOf(const NodeAttribute &attribute) {
  if (auto *number = attribute.as<double>())
    return fromNumbers(DataType::f32, {}, {*number});
  if (auto *integer = attribute.as<int64_t>())
    return fromIntegers(DataType::i64, {}, {*integer});
  if (auto *numbers = attribute.as<std::vector<double>>())
    return fromNumbers(DataType::f32, {static_cast<int64_t>(numbers->size())}, *numbers);
  if (auto *integers = attribute.as<std::vector<int64_t>>())
    return fromIntegers(DataType::i64, {static_cast<int64_t>(integers->size())}, *integers);
  return attribute.tensor();
}

HostTensorPtr pick(const HostTensor &tensor, std::vector<int64_t> shape,
                   const std::vector<int64_t> &sources) {
  auto made = emptyTensor(tensor.spec.type, std::move(shape));
  made->symbolic = tensor.symbolic;
  const int64_t size = sizeOf(tensor.spec.type);
  std::string bytes(sources.size() * size, '\0');
  for (size_t i = 0; i < sources.size(); ++i)
    if (sources[i] >= 0)
      std::memcpy(&bytes[i * size], tensor.bytes->data() + sources[i] * size, size);
  made->bytes = std::make_shared<const std::string>(std::move(bytes));
  return made;
}

HostTensorPtr withShape(const HostTensorPtr &tensor, std::vector<int64_t> shape) {
  auto made = std::make_shared<HostTensor>(*tensor);
  made->spec.shape = std::move(shape);
  return made;
}

} // namespace gpuc::onnx
