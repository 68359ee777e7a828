#include "runtime/state/safetensors_header.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>
#include <unordered_set>

#include "runtime/base/quote.h"

namespace gpuc {
namespace {

using Json = nlohmann::json;

constexpr const char* kMetadataKey = "__metadata__";

struct TypeCode {
  const char* dtype;
  DataType type;
};
constexpr TypeCode kTypeCodes[] = {
    {"F64", DataType::f64},   {"F32", DataType::f32}, {"F16", DataType::f16},
    {"BF16", DataType::bf16}, {"I64", DataType::i64}, {"I32", DataType::i32},
    {"I8", DataType::i8},     {"U8", DataType::ui8},  {"BOOL", DataType::i1},
};

const char* dtypeOf(DataType type) {
  for (const TypeCode& code : kTypeCodes)
    if (code.type == type) return code.dtype;
  return "";
}

std::optional<DataType> typeOf(const std::string& dtype) {
  for (const TypeCode& code : kTypeCodes)
    if (dtype == code.dtype) return code.type;
  return std::nullopt;
}

/// Finds a key that comes twice in an object, of which the library would keep the last. The library can be
/// asked to watch for that while it parses, but then looks through an object again for each of its members.
class KeyWatch : public nlohmann::json_sax<Json> {
 public:
  const std::optional<std::string>& twice() const { return twice_; }

  bool start_object(size_t) override { return keys_.emplace_back(), true; }
  bool end_object() override { return keys_.pop_back(), true; }
  bool key(string_t& key) override {
    if (!keys_.back().insert(key).second && !twice_) twice_ = key;
    return true;
  }
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_array(size_t) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

 private:
  std::vector<std::unordered_set<std::string>> keys_;  // of the objects that are open
  std::optional<std::string> twice_;
};

/// Parses without exceptions.
Result<Json> parseJson(std::string_view text) {
  KeyWatch keys;
  bool is_json = Json::sax_parse(text.begin(), text.end(), &keys);
  Json json = is_json ? Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false) : Json();
  if (!json.is_object()) return Status::error("the header is not a JSON object");
  if (keys.twice()) return Status::error(inQuotes(*keys.twice()) + " stands twice in the header");
  return json;
}

Status parseMetadata(const Json& json, Metadata& metadata) {
  if (!json.is_object()) return Status::error("__metadata__ is not an object");
  for (const auto& [key, value] : json.items()) {
    if (!value.is_string()) return Status::error("__metadata__: " + inQuotes(key) + " is not a string");
    metadata[key] = value.get<std::string>();
  }
  return okStatus();
}

/// A non-negative integer of at most 63 bits.
bool isExtent(const Json& json) {
  return json.is_number_unsigned() && json.get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX);
}

Status parseShape(const Json& json, std::vector<int64_t>& shape) {
  if (!json.is_array()) return Status::error("its shape is not a list");
  for (const Json& extent : json) {
    if (!isExtent(extent)) return Status::error("its shape has an extent that is not an integer from 0 up");
    shape.push_back(extent.get<int64_t>());
  }
  constexpr size_t kMostExtents = 64;  // as arrays have
  if (shape.size() > kMostExtents)
    return errorf("its shape has %zu extents, at most %zu are known", shape.size(), kMostExtents);
  int64_t count = 0;
  if (!checkedElementCount(shape, count))
    return Status::error("its shape has more elements than 64 bits count");
  return okStatus();
}

Result<SafetensorsPlace> parsePlace(const Json& json, const std::string& name) {
  if (!json.is_object()) return Status::error("is not an object");
  for (const auto& [key, value] : json.items())
    if (key != "dtype" && key != "shape" && key != "data_offsets")
      return Status::error("has the unknown key " + inQuotes(key));
  if (json.size() != 3) return Status::error("must have dtype, shape and data_offsets");
  SafetensorsPlace place;
  place.spec.name = name;
  const Json& dtype = json["dtype"];
  std::optional<DataType> type = dtype.is_string() ? typeOf(dtype.get<std::string>()) : std::nullopt;
  if (!type)
    return Status::error("has the dtype " + (dtype.is_string() ? inQuotes(dtype.get<std::string>()) : "?") +
                         ", known are F64 F32 F16 BF16 I64 I32 I8 U8 BOOL");
  place.spec.type = *type;
  GPUC_RETURN_IF_ERROR(parseShape(json["shape"], place.spec.shape));
  const Json& offsets = json["data_offsets"];
  if (!offsets.is_array() || offsets.size() != 2 || !isExtent(offsets[0]) || !isExtent(offsets[1]))
    return Status::error("its data_offsets are not two integers from 0 up");
  place.begin = offsets[0].get<uint64_t>();
  place.end = offsets[1].get<uint64_t>();
  if (place.end < place.begin || place.end - place.begin != static_cast<uint64_t>(place.spec.sizeBytes()))
    return Status::error("its data_offsets [" + std::to_string(place.begin) + ", " +
                         std::to_string(place.end) + "] are not " + std::to_string(place.spec.sizeBytes()) +
                         " bytes apart, as " + place.spec.str() + " takes");
  return place;
}

Status checkNoGaps(const std::vector<SafetensorsPlace>& places) {
  uint64_t end = 0;
  for (const SafetensorsPlace& place : places) {
    if (place.begin != end)
      return Status::error("tensor " + inQuotes(place.spec.name) + " begins at byte " +
                           std::to_string(place.begin) + " of the data, expected " + std::to_string(end) +
                           ": " + (place.begin > end ? "a gap" : "an overlap"));
    end = place.end;
  }
  return okStatus();
}

/// The library writes only UTF-8; whatever it has to leave out is none.
bool isUtf8(const std::string& text) {
  std::string kept = Json(text).dump(-1, ' ', false, Json::error_handler_t::ignore);
  return Json::parse(kept, nullptr, /*allow_exceptions=*/false) == Json(text);
}

}  // namespace

Result<SafetensorsHeader> parseSafetensorsHeader(std::string_view text) {
  GPUC_ASSIGN_OR_RETURN(Json json, parseJson(text));
  SafetensorsHeader header;
  for (const auto& [name, value] : json.items()) {
    if (name == kMetadataKey) {
      GPUC_RETURN_IF_ERROR(parseMetadata(value, header.metadata));
      continue;
    }
    Result<SafetensorsPlace> place = parsePlace(value, name);
    if (!place.ok()) return Status::error("tensor " + inQuotes(name) + ": " + place.message());
    header.places.push_back(*std::move(place));
  }
  // Of places with the same begin the empty ones come first, or they would seem to overlap.
  std::sort(header.places.begin(), header.places.end(), [](const auto& a, const auto& b) {
    return std::tie(a.begin, a.end, a.spec.name) < std::tie(b.begin, b.end, b.spec.name);
  });
  GPUC_RETURN_IF_ERROR(checkNoGaps(header.places));
  return header;
}

Result<std::string> safetensorsHeaderText(const SafetensorsHeader& header) {
  // Tensors are written in the order of their data, each by the library; it sorts the metadata.
  std::string text = "{";
  if (!header.metadata.empty()) {
    for (const auto& [key, value] : header.metadata)
      if (!isUtf8(key) || !isUtf8(value)) return Status::error("metadata " + inQuotes(key) + " is not UTF-8");
    text += Json(kMetadataKey).dump() + ":" + Json(header.metadata).dump();
  }
  std::unordered_set<std::string_view> names;
  for (const SafetensorsPlace& place : header.places) {
    const TensorSpec& spec = place.spec;
    bool is_taken = !names.insert(spec.name).second;
    if (!isUtf8(spec.name) || spec.name == kMetadataKey || is_taken)
      return Status::error("a tensor cannot be named " + inQuotes(spec.name) +
                           (is_taken ? ", the name is taken" : ""));
    nlohmann::ordered_json entry = {
        {"dtype", dtypeOf(spec.type)}, {"shape", spec.shape}, {"data_offsets", {place.begin, place.end}}};
    text += (text.size() > 1 ? "," : "") + Json(spec.name).dump() + ":" + entry.dump();
  }
  text += '}';
  return text.append((8 - text.size() % 8) % 8, ' ');
}

}  // namespace gpuc
