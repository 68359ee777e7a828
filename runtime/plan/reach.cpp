#include "runtime/plan/reach.h"

#include <flatbuffers/minireflect.h>

#include <algorithm>
#include <cstring>

#include "runtime/plan/plan_generated.h"

namespace gpuc {
namespace {

using flatbuffers::TypeCode;
using flatbuffers::TypeTable;

/// Follows the schema, as `flatc --reflect-names` writes it down, through bytes of which nothing is known
/// yet.
class Walk {
 public:
  Walk(std::string_view payload, int most_depth) : payload_(payload), depth_left_(most_depth) {}

  Status walk() {
    const TypeTable& root = *fb::PlanTypeTable();
    GPUC_RETURN_IF_ERROR(followTable(0, root, "the root"));
    return okStatus();
  }

  const Reach& reach() const { return reach_; }

 private:
  template <typename T>
  bool read(uint64_t at, T& value) const {
    if (payload_.size() < sizeof(T) || at > payload_.size() - sizeof(T)) return false;
    std::memcpy(&value, payload_.data() + at, sizeof(T));
    return true;
  }

  Status damaged(const char* field) const {
    return errorf("damaged plan: '%s' in its FlatBuffer of %zu bytes leads nowhere", field, payload_.size());
  }

  /// A part of `bytes` that begins at `at`.
  Status arrive(uint64_t at, uint64_t bytes, const char* field) {
    if (bytes > payload_.size() || at > payload_.size() - bytes) return damaged(field);
    ++reach_.parts;
    reach_.bytes += bytes;
    if (reach_.bytes > payload_.size())
      return errorf(
          "plan with shared parts: followed up to '%s' they come to more than the %zu bytes that it "
          "has; compile the model again",
          field, payload_.size());
    return okStatus();
  }

  /// Where the offset at `at` leads.
  Status follow(uint64_t at, uint64_t& target, const char* field) const {
    uint32_t offset = 0;
    if (!read(at, offset)) return damaged(field);
    target = at + offset;
    return okStatus();
  }

  Status followTable(uint64_t from, const TypeTable& type, const char* field) {
    uint64_t at = 0;
    GPUC_RETURN_IF_ERROR(follow(from, at, field));
    if (depth_left_ == 0) return errorf("damaged plan: '%s' is nested too deep", field);
    --depth_left_;
    Status status = visitTable(at, type, field);
    ++depth_left_;
    return status;
  }

  /// Of the table at `at`: how long it is, and where its fields are told.
  struct Layout {
    uint64_t fields;
    uint16_t fields_bytes, bytes;
  };
  bool readLayout(uint64_t at, Layout& layout) const {
    int32_t back = 0;
    if (!read(at, back)) return false;
    const int64_t fields = static_cast<int64_t>(at) - back;
    if (fields < 0) return false;
    layout.fields = static_cast<uint64_t>(fields);
    return read(layout.fields, layout.fields_bytes) && read(layout.fields + 2, layout.bytes);
  }

  /// Where the table's `index`-th field lies; 0 if it is not there.
  uint64_t placeOf(uint64_t at, const Layout& layout, size_t index) const {
    const uint64_t entry = 4 + 2 * index;
    uint16_t offset = 0;
    if (entry + 2 > layout.fields_bytes || !read(layout.fields + entry, offset) || offset == 0) return 0;
    return at + offset;
  }

  Status visitTable(uint64_t at, const TypeTable& type, const char* field) {
    Layout layout{};
    if (!readLayout(at, layout)) return damaged(field);
    GPUC_RETURN_IF_ERROR(arrive(at, std::max<uint64_t>(layout.bytes, sizeof(int32_t)), field));
    for (size_t i = 0; i < type.num_elems; ++i) {
      const uint64_t place = placeOf(at, layout, i);
      const TypeCode code = type.type_codes[i];
      const char* name = type.names[i];
      if (place == 0) continue;
      if (code.is_repeating)
        GPUC_RETURN_IF_ERROR(followVector(place, type, code, name));
      else if (code.base_type == flatbuffers::ET_STRING)
        GPUC_RETURN_IF_ERROR(followString(place, name));
      else if (const TypeTable* inner = tableOf(at, layout, type, i))
        GPUC_RETURN_IF_ERROR(followTable(place, *inner, name));
    }
    return okStatus();
  }

  /// The type of the table to which the `index`-th field leads; of a union, by what the field before it says.
  /// Null if it leads to none.
  const TypeTable* tableOf(uint64_t at, const Layout& layout, const TypeTable& type, size_t index) const {
    const TypeTable* inner = sequenceOf(type, type.type_codes[index]);
    if (!inner || inner->st == flatbuffers::ST_TABLE) return inner;
    if (inner->st != flatbuffers::ST_UNION || index == 0) return nullptr;
    const uint64_t place = placeOf(at, layout, index - 1);
    uint8_t kind = 0;
    if (place == 0 || !read(place, kind) || kind >= inner->num_elems) return nullptr;
    return sequenceOf(*inner, inner->type_codes[kind]);
  }

  static const TypeTable* sequenceOf(const TypeTable& type, TypeCode code) {
    const bool leads = code.base_type == flatbuffers::ET_SEQUENCE && code.sequence_ref >= 0;
    return leads ? type.type_refs[code.sequence_ref]() : nullptr;
  }

  Status followString(uint64_t from, const char* field) {
    uint64_t at = 0;
    uint32_t length = 0;
    GPUC_RETURN_IF_ERROR(follow(from, at, field));
    if (!read(at, length)) return damaged(field);
    return arrive(at, sizeof(length) + uint64_t{length} + 1, field);
  }

  Status followVector(uint64_t from, const TypeTable& type, TypeCode code, const char* field) {
    const bool of_strings = code.base_type == flatbuffers::ET_STRING;
    const TypeTable* inner = sequenceOf(type, code);
    uint64_t at = 0;
    uint32_t count = 0;
    GPUC_RETURN_IF_ERROR(follow(from, at, field));
    if (!read(at, count)) return damaged(field);
    const auto element = static_cast<flatbuffers::ElementaryType>(code.base_type);
    const uint64_t bytes = flatbuffers::InlineSize(element, inner);
    GPUC_RETURN_IF_ERROR(arrive(at, sizeof(count) + bytes * count, field));
    for (uint64_t place = at + sizeof(count); (of_strings || inner) && count > 0; --count, place += bytes)
      GPUC_RETURN_IF_ERROR(of_strings ? followString(place, field) : followTable(place, *inner, field));
    return okStatus();
  }

  std::string_view payload_;
  int depth_left_;
  Reach reach_;
};

}  // namespace

Result<Reach> reachOf(std::string_view payload, int most_depth) {
  Walk walk(payload, most_depth);
  GPUC_RETURN_IF_ERROR(walk.walk());
  return walk.reach();
}

}  // namespace gpuc
