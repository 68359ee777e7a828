//===- Reader.cpp - From the bytes of an ONNX file to a Model ---------------===//
//
// The only file that sees protobuf. Messages are taken apart by value: what is large (raw bytes) is moved,
// not copied.
//
//===----------------------------------------------------------------------===//

#include "frontend/onnx/reader/Reader.h"

#include "frontend/onnx/Text.h"
#include "frontend/onnx/reader/ElementTypes.h"
#include "frontend/onnx/reader/ExternalData.h"
#include "frontend/onnx/reader/HostTensor.h"
#include "frontend/onnx/reader/Upgrade.h"
#include "onnx.pb.h"
#include "runtime/base/file_kind.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <climits>
#include <filesystem>

namespace gpuc::onnx {
namespace {

constexpr int64_t kLastOpset = 27;

template <typename Element, typename Field> std::string packed(const Field &field) {
  std::string bytes;
  bytes.reserve(field.size() * sizeof(Element));
  for (auto number : field) {
    Element element = static_cast<Element>(number);
    bytes.append(reinterpret_cast<const char *>(&element), sizeof(Element));
  }
  return bytes;
}

/// The elements of a tensor that does not keep them as raw bytes.
std::string typedBytes(const ::onnx::TensorProto &tensor, DataType type) {
  switch (type) {
  case DataType::f64:
    return packed<double>(tensor.double_data());
  case DataType::f32:
    return packed<float>(tensor.float_data());
  case DataType::i64:
    return packed<int64_t>(tensor.int64_data());
  case DataType::i32:
    return packed<int32_t>(tensor.int32_data());
  case DataType::f16:
  case DataType::bf16: // The bits, as integers.
    return packed<uint16_t>(tensor.int32_data());
  case DataType::i8:
  case DataType::ui8:
  case DataType::i1:
    return packed<uint8_t>(tensor.int32_data());
  }
  return {};
}

/// Bytes other than 0 and 1 would be read as neither.
void normalizeBools(std::string &bytes) {
  for (char &byte : bytes)
    byte = byte != 0;
}

/// A repeated field that the definition of the format may be too old to have, as Debian's is: then it is
/// among what protobuf kept of the message without knowing it, under the field's number.
template <typename Entry> std::vector<Entry> unknownEntries(const std::string &unknown, uint32_t field) {
  namespace pb = google::protobuf;
  std::vector<Entry> entries;
  pb::io::CodedInputStream stream(reinterpret_cast<const uint8_t *>(unknown.data()),
                                  static_cast<int>(unknown.size()));
  while (uint32_t tag = stream.ReadTag()) {
    std::string bytes;
    if (tag != (field << 3 | 2)) { // 2: of a length that precedes it.
      if (!pb::internal::WireFormatLite::SkipField(&stream, tag))
        break;
    } else if (!pb::internal::WireFormatLite::ReadBytes(&stream, &bytes)) {
      break;
    } else if (Entry entry; entry.ParseFromString(bytes)) {
      entries.push_back(std::move(entry));
    }
  }
  return entries;
}

/// The field `metadata_props` of a message, of IR version 10 on.
template <typename Message> Notes notesOf(const Message &message, uint32_t field) {
  Notes notes;
  auto keep = [&](const auto &entries) {
    for (const ::onnx::StringStringEntryProto &entry : entries)
      if (entry.key() != "pkg.torch.onnx.stack_trace") // Long, and of no use here.
        notes[entry.key()] = entry.value();
  };
  if constexpr (requires { message.metadata_props(); })
    keep(message.metadata_props());
  else
    keep(unknownEntries<::onnx::StringStringEntryProto>(message.unknown_fields(), field));
  return notes;
}
constexpr uint32_t kNotesOfNode = 9, kNotesOfValue = 4;

/// The field `attribute_proto`, of IR version 9 on.
template <typename Function> std::vector<::onnx::AttributeProto> defaultsOf(const Function &function) {
  if constexpr (requires { function.attribute_proto(); })
    return {function.attribute_proto().begin(), function.attribute_proto().end()};
  else
    return unknownEntries<::onnx::AttributeProto>(function.unknown_fields(), 11);
}

class Reader {
public:
  explicit Reader(const std::string &file) : file_(file) {}

  Result<Model> model(::onnx::ModelProto &proto);
  Result<HostTensorPtr> tensor(::onnx::TensorProto &proto, const std::string &what);

private:
  Status fail(const std::string &text) const { return Status::error(file_ + ": " + oneLine(text)); }

  Status graph(::onnx::GraphProto &proto, Graph &out);
  Status nodes(google::protobuf::RepeatedPtrField<::onnx::NodeProto> &protos, std::vector<Node> &out);
  Status attribute(::onnx::AttributeProto &proto, const std::string &node, NodeAttribute &out);
  ValueInfo valueInfo(const ::onnx::ValueInfoProto &proto);

  std::string file_;
  std::vector<std::string> externalFiles_;
  std::set<std::pair<std::string, std::string>> checksums_;
};

Result<HostTensorPtr> Reader::tensor(::onnx::TensorProto &proto, const std::string &what) {
  auto out = std::make_shared<HostTensor>();
  ElementType element = elementType(proto.data_type());
  out->typeName = element.name;
  out->spec.name = proto.name();
  out->spec.shape.assign(proto.dims().begin(), proto.dims().end());
  int64_t count = 0;
  if (!checkedElementCount(out->spec.shape, count))
    return fail(what + " has an absurd shape");
  if (!element.type) {
    out->supported = false;
    return HostTensorPtr(out);
  }
  out->spec.type = *element.type;
  std::string bytes;
  if (proto.data_location() == ::onnx::TensorProto::EXTERNAL) {
    ExternalKeys keys;
    for (const auto &entry : proto.external_data())
      if (Status added = addExternalKey(keys, entry.key(), entry.value()); !added.ok())
        return fail(what + ": " + added.message());
    Result<std::string> read = readExternalData(file_, keys, out->spec.sizeBytes());
    if (!read.ok())
      return fail(what + ": " + read.message());
    bytes = *std::move(read);
    externalFiles_.push_back((std::filesystem::path(file_).parent_path() / keys["location"]).string());
    if (keys.count("checksum"))
      checksums_.insert({externalFiles_.back(), keys["checksum"]});
  } else {
    bytes = proto.has_raw_data() ? std::move(*proto.mutable_raw_data()) : typedBytes(proto, *element.type);
  }
  if (bytes.size() != static_cast<uint64_t>(out->spec.sizeBytes()))
    return fail(what + " has " + std::to_string(bytes.size()) + " bytes, expected " +
                std::to_string(out->spec.sizeBytes()) + " of " + out->spec.str());
  if (*element.type == DataType::i1)
    normalizeBools(bytes);
  out->bytes = std::make_shared<const std::string>(std::move(bytes));
  return HostTensorPtr(out);
}

ValueInfo Reader::valueInfo(const ::onnx::ValueInfoProto &proto) {
  ValueInfo out;
  out.name = proto.name();
  if (!proto.has_type() || !proto.type().has_tensor_type()) {
    out.typeName = proto.has_type() ? "no tensor" : "of no type";
    return out;
  }
  const auto &tensor = proto.type().tensor_type();
  ElementType element = elementType(tensor.elem_type());
  out.type = element.type;
  out.typeName = element.name;
  if (!tensor.has_shape())
    return out;
  out.shape.emplace();
  for (const auto &dim : tensor.shape().dim()) {
    Extent &extent = out.shape->emplace_back();
    if (dim.has_dim_value())
      extent.number = dim.dim_value();
    else
      extent.name = dim.dim_param();
  }
  return out;
}

Status Reader::attribute(::onnx::AttributeProto &proto, const std::string &node, NodeAttribute &out) {
  out.name = proto.name();
  out.reference = proto.ref_attr_name();
  switch (proto.type()) {
  case ::onnx::AttributeProto::FLOAT:
    out.value = decimalOf(proto.f());
    break;
  case ::onnx::AttributeProto::INT:
    out.value = int64_t{proto.i()};
    break;
  case ::onnx::AttributeProto::STRING:
    out.value = proto.s();
    break;
  case ::onnx::AttributeProto::TENSOR: {
    GPUC_ASSIGN_OR_RETURN(out.value, tensor(*proto.mutable_t(), node + ": attribute '" + proto.name() + "'"));
    break;
  }
  case ::onnx::AttributeProto::GRAPH: {
    auto body = std::make_shared<Graph>();
    GPUC_RETURN_IF_ERROR(graph(*proto.mutable_g(), *body));
    out.value = std::shared_ptr<const Graph>(body);
    break;
  }
  case ::onnx::AttributeProto::FLOATS: {
    auto &numbers = out.value.emplace<std::vector<double>>();
    std::transform(proto.floats().begin(), proto.floats().end(), std::back_inserter(numbers), decimalOf);
    break;
  }
  case ::onnx::AttributeProto::INTS:
    out.value = std::vector<int64_t>(proto.ints().begin(), proto.ints().end());
    break;
  case ::onnx::AttributeProto::STRINGS:
    out.value = std::vector<std::string>(proto.strings().begin(), proto.strings().end());
    break;
  default:
    break;
  }
  return okStatus();
}

Status Reader::nodes(google::protobuf::RepeatedPtrField<::onnx::NodeProto> &protos, std::vector<Node> &out) {
  for (::onnx::NodeProto &proto : protos) {
    Node &node = out.emplace_back();
    node.op = proto.op_type();
    node.domain = proto.domain() == "ai.onnx" ? "" : proto.domain();
    node.inputs.assign(proto.input().begin(), proto.input().end());
    node.outputs.assign(proto.output().begin(), proto.output().end());
    // Exporters may leave nodes without names; what a node computes names it as well.
    node.name = !proto.name().empty() ? proto.name() : node.outputs.empty() ? node.op : node.outputs.front();
    node.notes = notesOf(proto, kNotesOfNode);
    for (::onnx::AttributeProto &attributeProto : *proto.mutable_attribute())
      GPUC_RETURN_IF_ERROR(attribute(attributeProto, "node '" + node.name + "' (" + node.op + ")",
                                     node.attributes.emplace_back()));
  }
  return okStatus();
}

Status Reader::graph(::onnx::GraphProto &proto, Graph &out) {
  out.name = proto.name();
  GPUC_RETURN_IF_ERROR(nodes(*proto.mutable_node(), out.nodes));
  for (const auto &input : proto.input())
    out.inputs.push_back(valueInfo(input));
  for (const auto &output : proto.output())
    out.outputs.push_back(valueInfo(output));
  for (const auto &value : proto.value_info())
    if (Notes notes = notesOf(value, kNotesOfValue); !notes.empty())
      out.notes.emplace(value.name(), std::move(notes));
  if (proto.sparse_initializer_size() > 0)
    return fail("graph '" + out.name + "' has sparse initializers, which gpuc does not know");
  for (::onnx::TensorProto &initializer : *proto.mutable_initializer()) {
    GPUC_ASSIGN_OR_RETURN(HostTensorPtr value,
                          tensor(initializer, "initializer '" + initializer.name() + "'"));
    out.initializers.emplace_back(initializer.name(), value);
  }
  return okStatus();
}

Result<Model> Reader::model(::onnx::ModelProto &proto) {
  Model out;
  out.producer = proto.producer_name();
  for (const auto &import : proto.opset_import())
    if (import.domain().empty() || import.domain() == "ai.onnx")
      out.opset = import.version();
  if (!proto.has_graph())
    return fail("no ONNX model: it has no graph");
  if (out.opset < kLeastOpset || out.opset > kLastOpset)
    return fail("opset " + std::to_string(out.opset) + ": gpuc reads " + std::to_string(kLeastOpset) +
                " to " + std::to_string(kLastOpset) + "; convert it with onnx.version_converter");
  GPUC_RETURN_IF_ERROR(graph(*proto.mutable_graph(), out.graph));
  for (::onnx::FunctionProto &function : *proto.mutable_functions()) {
    // Which of overloads (IR version 10) a call means is not read: it would be the first one's numbers.
    for (const Function &other : out.functions)
      if (other.domain == function.domain() && other.name == function.name())
        return fail("function '" + other.name + "' of domain '" + other.domain +
                    "' is there twice, which gpuc does not know: inline functions before (onnx.inliner)");
    Function &made = out.functions.emplace_back();
    made.domain = function.domain();
    made.name = function.name();
    made.inputs.assign(function.input().begin(), function.input().end());
    made.outputs.assign(function.output().begin(), function.output().end());
    for (::onnx::AttributeProto &otherwise : defaultsOf(function))
      GPUC_RETURN_IF_ERROR(attribute(otherwise, "of function " + made.name, made.defaults.emplace_back()));
    GPUC_RETURN_IF_ERROR(nodes(*function.mutable_node(), made.nodes));
  }
  upgrade(out);
  out.externalFiles = std::move(externalFiles_);
  out.checksums = std::move(checksums_);
  return out;
}

template <typename Message>
Status parseMessage(std::string_view bytes, const std::string &file, const char *kind, Message &message) {
  if (bytes.size() > INT_MAX)
    return Status::error(file + ": " + std::to_string(bytes.size()) +
                         " bytes: protobuf reads less than 2 GiB; save the weights as external data");
  const FileKind taken = fileKindOf(bytes);
  const bool isOther = isCertain(taken); // Some of these begin as a message might.
  if (!isOther && !bytes.empty() && message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return okStatus();
  return Status::error(file + ": no " + kind + (isOther ? "" : ", or cut short") + " (" +
                       std::to_string(bytes.size()) + " bytes)" +
                       (taken == FileKind::onnx ? "" : explainFileKind(bytes, FileRole::model)));
}

} // namespace

Result<Model> parseModel(std::string_view bytes, const std::string &file) {
  ::onnx::ModelProto proto;
  GPUC_RETURN_IF_ERROR(parseMessage(bytes, file, "ONNX model", proto));
  return Reader(file).model(proto);
}

Result<HostTensorPtr> parseTensor(std::string_view bytes, const std::string &file) {
  ::onnx::TensorProto proto;
  if (bytes.empty()) // A scalar of nothing is no message at all.
    return Status::error(file + ": no ONNX tensor: the file is empty");
  GPUC_RETURN_IF_ERROR(parseMessage(bytes, file, "ONNX tensor", proto));
  return Reader(file).tensor(proto, "the tensor");
}

} // namespace gpuc::onnx
