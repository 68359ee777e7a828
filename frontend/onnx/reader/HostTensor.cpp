//===- HostTensor.cpp - Arithmetic on what is known while importing ---------===//

#include "frontend/onnx/reader/HostTensor.h"

#include "runtime/base/half.h"

#include <charconv>
#include <cmath>
#include <cstring>

namespace gpuc::onnx {
namespace {

/// A number of half precision in its 16 bits.
template <float (*load)(uint16_t), uint16_t (*store)(float)> struct Half {
  Half() = default;
  explicit Half(double number) : bits(store(static_cast<float>(number))) {}
  explicit operator double() const { return load(bits); }

  uint16_t bits = 0;
};

/// Calls `function` with 0 as what holds an element of `type`.
template <typename Function> void withElement(DataType type, Function function) {
  switch (type) {
  case DataType::f64:
    return function(double());
  case DataType::f32:
    return function(float());
  case DataType::f16:
    return function(Half<halfToFloat, floatToHalf>());
  case DataType::bf16:
    return function(Half<bfloat16ToFloat, floatToBfloat16>());
  case DataType::i64:
    return function(int64_t());
  case DataType::i32:
    return function(int32_t());
  case DataType::i8:
    return function(int8_t());
  case DataType::ui8:
    return function(uint8_t());
  case DataType::i1:
    return function(bool());
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

/// Integers wrap around, floating point is rounded; to i1: whether it is not 0.
template <typename To, typename From> To convert(From from) {
  constexpr bool isInteger = std::is_integral_v<To> && !std::is_same_v<To, bool>;
  if constexpr (isInteger && std::is_integral_v<From>)
    return static_cast<To>(from);
  else if constexpr (isInteger)
    return static_cast<To>(cut(static_cast<double>(from)));
  else
    return static_cast<To>(static_cast<double>(from));
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
  std::string bytes(elements.size() * sizeOf(type), '\0');
  withElement(type, [&]<typename Stored>(Stored stored) {
    for (size_t i = 0; i < elements.size(); ++i) {
      stored = convert<Stored>(elements[i]);
      std::memcpy(&bytes[i * sizeof(Stored)], &stored, sizeof(Stored));
    }
  });
  made->bytes = std::make_shared<const std::string>(std::move(bytes));
  return made;
}

template <typename Element> std::vector<Element> elementsOf(const HostTensor &tensor) {
  std::vector<Element> elements(tensor.bytes ? tensor.bytes->size() / sizeOf(tensor.spec.type) : 0);
  withElement(tensor.spec.type, [&]<typename Stored>(Stored stored) {
    for (size_t i = 0; i < elements.size(); ++i) {
      std::memcpy(&stored, &(*tensor.bytes)[i * sizeof(Stored)], sizeof(Stored));
      elements[i] = convert<Element>(stored);
    }
  });
  return elements;
}

} // namespace

std::vector<int64_t> integersOf(const HostTensor &tensor) { return elementsOf<int64_t>(tensor); }
double decimalOf(float number) {
  char text[32];
  double meant = number;
  auto end = std::to_chars(text, text + sizeof(text), number);
  if (std::isfinite(number))
    std::from_chars(text, end.ptr, meant);
  return meant;
}

std::vector<double> numbersOf(const HostTensor &tensor) { return elementsOf<double>(tensor); }

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
