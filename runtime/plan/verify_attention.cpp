// Attention: numbers within bounds, operands that reach from the first to the last element of their layout,
// and no two elements in one place.
#include <algorithm>
#include <cinttypes>
#include <cmath>

#include "runtime/base/data_type.h"
#include "runtime/plan/verify.h"

namespace gpuc {
namespace {

constexpr uint64_t kMostNumber = (uint64_t{1} << 31) - 1;

struct Axis {
  uint64_t extent, stride;  // in elements
};

/// Elements from the first to the last of the axes, over rows of `row` elements; 0 if elements meet, or if
/// there are more than 2^64.
uint64_t spanOf(std::initializer_list<Axis> list, uint64_t row) {
  Axis axes[4];
  size_t count = 0;
  for (const Axis& axis : list)
    if (axis.extent > 1) axes[count++] = axis;
  std::sort(axes, axes + count, [](const Axis& a, const Axis& b) { return a.stride < b.stride; });
  for (size_t i = 0; i < count; ++i) {
    if (axes[i].stride < row || __builtin_mul_overflow(axes[i].extent - 1, axes[i].stride, &axes[i].stride) ||
        __builtin_add_overflow(axes[i].stride, row, &row))
      return 0;
  }
  return row;
}

class AttentionVerifier {
 public:
  explicit AttentionVerifier(const fb::Attention& attention) : a_(attention) {}

  Status verify() const {
    GPUC_RETURN_IF_ERROR(verifyNumbers());
    const uint64_t h = a_.heads(), g = a_.groups(), t = a_.queries(), s = a_.keys();
    const uint64_t d = a_.width(), e = a_.value_width();
    GPUC_RETURN_IF_ERROR(verifyTensor("query", a_.query(), a_.query_layout(), h, t, d));
    GPUC_RETURN_IF_ERROR(verifyTensor("key", a_.key(), a_.key_layout(), g, s, d));
    GPUC_RETURN_IF_ERROR(verifyTensor("value", a_.value(), a_.value_layout(), g, s, e));
    GPUC_RETURN_IF_ERROR(verifyTensor("result", a_.result(), a_.result_layout(), h, t, e));
    const fb::AttentionLayout dense(h * t, t, 1);
    GPUC_RETURN_IF_ERROR(verifyTensor("log_sum_exp", a_.log_sum_exp(), &dense, h, t, 1));
    if (a_.kind() == fb::AttentionKind::gradient) {
      GPUC_RETURN_IF_ERROR(verifyTensor("cotangent", a_.cotangent(), a_.cotangent_layout(), h, t, e));
      GPUC_RETURN_IF_ERROR(
          verifyTensor("query's cotangent", a_.query_cotangent(), a_.query_cotangent_layout(), h, t, d));
      GPUC_RETURN_IF_ERROR(
          verifyTensor("key's cotangent", a_.key_cotangent(), a_.key_cotangent_layout(), g, s, d));
      GPUC_RETURN_IF_ERROR(
          verifyTensor("value's cotangent", a_.value_cotangent(), a_.value_cotangent_layout(), g, s, e));
    }
    GPUC_RETURN_IF_ERROR(verifyMask());
    return verifyDropout();
  }

 private:
  Status verifyNumbers() const {
    if (a_.mask_kind() > fb::AttentionMask::MAX || !isFloat(static_cast<DataType>(a_.type())))
      return errorf("attention: unknown mask %d or element type %d", int(a_.mask_kind()), int(a_.type()));
    for (uint64_t extent :
         {a_.batch(), a_.heads(), a_.groups(), a_.queries(), a_.keys(), a_.width(), a_.value_width()})
      if (extent == 0 || extent > kMostNumber) return errorf("attention: an extent of %" PRIu64, extent);
    if (a_.heads() % a_.groups() != 0)
      return errorf("attention: %" PRIu64 " groups do not divide %" PRIu64 " heads", a_.groups(), a_.heads());
    if (!std::isfinite(a_.scale())) return errorf("attention: a scale of %g", a_.scale());
    return okStatus();
  }

  /// An operand that must be there, and be just as long as its layout.
  Status verifyTensor(const char* name, const fb::Operand* operand, const fb::AttentionLayout* layout,
                      uint64_t heads, uint64_t rows, uint64_t width) const {
    if (!operand || !layout) return errorf("attention without %s", name);
    if (layout->row() > kMostArenaBytes)
      return errorf("attention: rows of %s are %" PRIu64 " apart", name, layout->row());
    const uint64_t span =
        layout->row() < width
            ? 0
            : spanOf({{a_.batch(), layout->batch()}, {heads, layout->head()}, {rows, layout->row()}}, width);
    if (span == 0)
      return errorf("attention: %s has elements that meet, with strides %" PRIu64 ", %" PRIu64
                    " and %" PRIu64,
                    name, layout->batch(), layout->head(), layout->row());
    return verifySize(name, *operand, span, static_cast<DataType>(a_.type()));
  }

  static Status verifySize(const char* name, const fb::Operand& operand, uint64_t elements, DataType type) {
    const int64_t bytes = sizeOf(type);
    uint64_t size = 0;
    if (__builtin_mul_overflow(elements, static_cast<uint64_t>(bytes), &size) || size != operand.size())
      return errorf("attention: %s is %" PRIu64 " bytes, its layout spans %" PRIu64 " elements", name,
                    operand.size(), elements);
    if (!beginsAtElement(operand, type)) return errorf("attention: %s begins within an element", name);
    return okStatus();
  }

  Status verifyMask() const {
    const bool has_mask = a_.mask_kind() != fb::AttentionMask::none;
    if (has_mask != (a_.mask() != nullptr) || (has_mask && !a_.mask_strides()))
      return errorf("attention: a mask, its kind and its strides come together or not at all");
    const bool is_added = a_.mask_kind() == fb::AttentionMask::addends;
    if (a_.mask_cotangent() && (!is_added || a_.kind() != fb::AttentionKind::gradient))
      return errorf("attention: a mask's cotangent, and no mask to differentiate by");
    if (!has_mask) return okStatus();
    const fb::MaskStrides& strides = *a_.mask_strides();
    auto axis = [](uint64_t extent, uint64_t stride) { return Axis{stride == 0 ? 1 : extent, stride}; };
    const uint64_t span = spanOf({axis(a_.batch(), strides.batch()), axis(a_.heads(), strides.head()),
                                  axis(a_.queries(), strides.query()), axis(a_.keys(), strides.key())},
                                 1);
    if (span == 0) return errorf("attention: the mask has elements that meet");
    const DataType type = is_added ? static_cast<DataType>(a_.type()) : DataType::i1;
    GPUC_RETURN_IF_ERROR(verifySize("mask", *a_.mask(), span, type));
    return a_.mask_cotangent() ? verifySize("mask's cotangent", *a_.mask_cotangent(), span, type)
                               : okStatus();
  }

  Status verifyDropout() const {
    if (!(a_.dropout() >= 0 && a_.dropout() < 1) || a_.id() > UINT32_MAX)
      return errorf("attention: dropout %g with id %" PRIu64, a_.dropout(), a_.id());
    const bool drops = a_.dropout() > 0;
    if (drops != (a_.seed() != nullptr) || drops != (a_.step() != nullptr))
      return errorf("attention: dropout, seed and step come together or not at all");
    if (drops && (a_.seed()->size() != 8 || a_.step()->size() != 8))
      return errorf("attention: seed and step are %" PRIu64 " and %" PRIu64 " bytes, expected 8",
                    a_.seed()->size(), a_.step()->size());
    if (drops && (!beginsAtElement(*a_.seed(), DataType::i64) || !beginsAtElement(*a_.step(), DataType::i64)))
      return errorf("attention: seed or step begins within an element");
    return okStatus();
  }

  const fb::Attention& a_;
};

}  // namespace

Status verifyAttention(const fb::Attention& attention) { return AttentionVerifier(attention).verify(); }

}  // namespace gpuc
