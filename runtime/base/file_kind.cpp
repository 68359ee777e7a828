#include "runtime/base/file_kind.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace gpuc {
namespace {

using namespace std::literals;

struct Magic {
  std::string_view begin;
  FileKind kind;
};

// With their lengths: some hold zeros.
constexpr Magic kMagics[] = {
    {"gpucplan", FileKind::plan},
    {"\x93NUMPY", FileKind::npy},
    {"\x89PNG\r\n\x1a\n", FileKind::picture},
    {"\xff\xd8\xff", FileKind::picture},
    {"\x89HDF\r\n\x1a\n", FileKind::hdf5},
    {"ML\xefR", FileKind::mlir_bytecode},
    {"GGUF", FileKind::gguf},
    {"\x88\xd8\x34\x01\x01\0\0\0"sv, FileKind::llm_c},  // 20240520, version 1
    {"version https://git-lfs.github.com/spec/", FileKind::lfs_pointer},
    {"<!DOCTYPE html", FileKind::html},
    {"<!doctype html", FileKind::html},
    {"<html", FileKind::html},
};

uint64_t littleEndian(std::string_view bytes, size_t begin, size_t count) {
  uint64_t value = 0;
  for (size_t i = count; i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[begin + i]);
  return value;
}

/// A length of at most 32 bits in 64, then a JSON object.
bool isSafetensors(std::string_view bytes) {
  if (bytes.size() < 10 || littleEndian(bytes, 4, 4) != 0) return false;
  return bytes[8] == '{' && (bytes[9] == '"' || bytes[9] == '}');
}

/// 1f 8b, deflate, and none of the flags that are reserved.
bool isGzip(std::string_view bytes) {
  return bytes.size() >= 4 && bytes.starts_with("\x1f\x8b\x08") && (bytes[3] & 0xe0) == 0;
}

/// Protocols 2 to 5 of Python's pickle, which also is how PyTorch wrote before version 1.6.
bool isPickle(std::string_view bytes) {
  if (bytes.size() < 3 || bytes[0] != '\x80' || bytes[1] < 2 || bytes[1] > 5) return false;
  constexpr std::string_view kNext = "}](c\x8a\x95";  // empty dict, list, mark, global, long integer, frame
  return kNext.find(bytes[2]) != std::string_view::npos;
}

/// A zip is told by its first entry: arrays of NumPy, or the pickle of PyTorch.
FileKind kindOfZip(std::string_view bytes) {
  constexpr size_t kNameLengthAt = 26, kNameAt = 30;
  if (bytes.size() < kNameAt) return FileKind::zip;
  std::string_view name =
      bytes.substr(kNameAt, std::min<size_t>(littleEndian(bytes, kNameLengthAt, 2), bytes.size() - kNameAt));
  if (name.ends_with(".npy")) return FileKind::npz;
  if (name.ends_with("/data.pkl") || name.ends_with("/.format_version") || name.ends_with("/version") ||
      name.ends_with("/byteorder"))
    return FileKind::pytorch;
  return FileKind::zip;
}

/// The header of images or labels, whose extents follow as four bytes each.
bool isIdx(std::string_view bytes) {
  constexpr std::string_view kElementTypes = "\x08\x09\x0b\x0c\x0d\x0e";
  return bytes.size() >= 8 && bytes[0] == 0 && bytes[1] == 0 && bytes[3] >= 1 && bytes[3] <= 4 &&
         kElementTypes.find(bytes[2]) != std::string_view::npos;
}

/// Field 1 of ModelProto, the version of the intermediate representation, then the producer's name or what
/// else a model begins with.
bool isOnnx(std::string_view bytes) {
  if (bytes.size() < 4 || bytes[0] != 0x08 || bytes[1] < 1 || bytes[1] > 20) return false;
  constexpr std::string_view kNextFields = "\x12\x1a\x22\x28\x32\x3a\x42\x72";
  return kNextFields.find(bytes[2]) != std::string_view::npos;
}

/// Text that begins, after comments and blanks, as a module does.
bool isMlir(std::string_view bytes) {
  while (true) {
    size_t begin = bytes.find_first_not_of(" \t\r\n");
    if (begin == std::string_view::npos) return false;
    bytes.remove_prefix(begin);
    if (!bytes.starts_with("//")) break;
    bytes.remove_prefix(std::min(bytes.find('\n'), bytes.size()));
  }
  constexpr std::string_view kBegins[] = {"module @",       "module {", "module attributes",
                                          "func.func @",    "#loc",     "\"builtin.module\"",
                                          "gpuc.variable @"};
  return std::any_of(std::begin(kBegins), std::end(kBegins),
                     [&](std::string_view begin) { return bytes.starts_with(begin); });
}

/// What errors say of a kind. Where weights, a program (a plan, a model), or just a model were wanted,
/// another cure may serve.
struct Description {
  FileKind kind;
  bool is_certain;
  const char* what;
  const char* cure;
  const char* cure_for_weights = cure;
  const char* cure_for_programs = cure;
  const char* cure_for_models = cure_for_programs;
};

constexpr const char* kSaveArrays = "save each array by numpy.save";
constexpr const char* kSaveDict = "save a dict of the arrays by safetensors.numpy.save_file";
constexpr const char* kSaveTensors = "save each tensor by numpy.save(FILE, tensor.numpy())";
constexpr const char* kSaveStateDict = "save its state_dict() by safetensors.torch.save_file";
constexpr const char* kPassWeights = "weights are passed by --variables=FILE";
constexpr const char* kPassArrays =
    "arrays are passed by --data=npy:NAME=FILE, or --input=NAME=FILE to gpuc-run";
constexpr const char* kExport = "export the model by torch.onnx.export and pass that to gpuc-import-onnx";
constexpr const char* kNoModel =
    "it holds numbers and no graph: export the model by torch.onnx.export and pass that to gpuc-import-onnx";

constexpr Description kDescriptions[] = {
    {FileKind::empty, false, "empty", nullptr},
    {FileKind::plan, true, "a plan of gpuc",
     "gpuc-train, gpuc-run, gpuc-generate and gpuc-inspect take it as PLAN"},
    {FileKind::safetensors, true, "a safetensors file", kPassWeights, kPassWeights, kPassWeights, kNoModel},
    {FileKind::npy, true, "a NumPy array (.npy)", kPassArrays, kSaveDict, kPassArrays, kNoModel},
    {FileKind::npz, true, "a zip of NumPy arrays (.npz)", kSaveArrays, kSaveDict, kSaveArrays, kNoModel},
    {FileKind::pytorch, true, "a file of PyTorch (.pt)", kSaveTensors, kSaveStateDict, kExport},
    {FileKind::pickle, false, "a pickle of Python (PyTorch's old .pt is one)", kSaveTensors, kSaveStateDict,
     kExport},
    {FileKind::zip, true, "a zip", "unpack it first"},
    {FileKind::gzip, true, "packed by gzip", "unpack it first"},
    {FileKind::idx, false, "an IDX file", "such data are passed by --data=idx:PREFIX"},
    {FileKind::picture, true, "a picture",
     "pictures are passed by --data=images:FOLDER, a folder for each class"},
    {FileKind::onnx, false, "likely an ONNX model", "gpuc-import-onnx turns it into .mlir and weights"},
    {FileKind::mlir, false, "text of .mlir", "gpuc-compile makes a plan of it"},
    {FileKind::hdf5, true, "an HDF5 file (.h5)", kSaveArrays, kSaveDict},
    {FileKind::mlir_bytecode, true, "bytecode of MLIR", "gpuc-opt FILE -o FILE.mlir makes text of it"},
    {FileKind::gguf, false, "a GGUF file", kSaveArrays, kSaveDict},
    {FileKind::llm_c, true, "tokens of llm.c", "leave out its header: tail -c +1025 FILE > tokens.bin",
     nullptr},
    {FileKind::lfs_pointer, true, "a pointer of Git LFS, not the file itself", "git lfs pull fetches it"},
    {FileKind::html, false, "a web page", "was a download refused?"},
};

const Description* descriptionOf(FileKind kind) {
  for (const Description& description : kDescriptions)
    if (description.kind == kind) return &description;
  return nullptr;
}

const char* cureFor(const Description& description, FileRole taken_for) {
  switch (taken_for) {
    case FileRole::weights:
      return description.cure_for_weights;
    case FileRole::plan:
      return description.cure_for_programs;
    case FileRole::model:
      return description.cure_for_models;
    case FileRole::data:
      break;
  }
  return description.cure;
}

}  // namespace

FileKind fileKindOf(std::string_view bytes) {
  if (bytes.empty()) return FileKind::empty;
  for (const Magic& magic : kMagics)
    if (bytes.starts_with(magic.begin)) return magic.kind;
  if (bytes.starts_with("PK\x03\x04")) return kindOfZip(bytes);
  if (isSafetensors(bytes)) return FileKind::safetensors;  // before gzip: its length may be any number
  if (isGzip(bytes)) return FileKind::gzip;
  if (isPickle(bytes)) return FileKind::pickle;
  if (isIdx(bytes)) return FileKind::idx;
  if (isOnnx(bytes)) return FileKind::onnx;
  if (isMlir(bytes)) return FileKind::mlir;
  return FileKind::unknown;
}

bool isCertain(FileKind kind) {
  const Description* description = descriptionOf(kind);
  return description && description->is_certain;
}

std::string explainFileKind(std::string_view bytes, FileRole taken_for) {
  const Description* description = descriptionOf(fileKindOf(bytes));
  if (!description) return "";
  const char* cure = cureFor(*description, taken_for);
  return std::string("; it is ") + description->what + (cure ? std::string(": ") + cure : "");
}

}  // namespace gpuc
