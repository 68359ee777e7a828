// A file in the wrong place is known by its first bytes, and the error says what to do with it.
#include "runtime/base/file_kind.h"

#include <gtest/gtest.h>

namespace gpuc {
namespace {

struct Beginning {
  std::string_view bytes;
  FileKind kind;
};

/// A zip's first entry; what else the header says does not matter here.
std::string zipOf(const std::string& name) {
  std::string header = std::string("PK\x03\x04", 4) + std::string(22, '\0');
  return header + static_cast<char>(name.size()) + std::string(3, '\0') + name;
}

// The bytes are those with which the named programs begin their files.
TEST(FileKind, IsToldByTheFirstBytes) {
  using namespace std::literals;
  const std::string npz = zipOf("arr_0.npy"), pt = zipOf("archive/data.pkl"), jar = zipOf("META-INF/");
  const Beginning beginnings[] = {
      {"", FileKind::empty},
      {"gpucplan\3\0\0\0"sv, FileKind::plan},
      {"\x10\0\0\0\0\0\0\0{\"a\":{}}"sv, FileKind::safetensors},
      {"\x08\0\0\0\0\0\0\0{}      "sv, FileKind::safetensors},
      {"\x93NUMPY\1\0v\0{"sv, FileKind::npy},
      {npz, FileKind::npz},
      {pt, FileKind::pytorch},
      {jar, FileKind::zip},
      {"\x80\x02\x8a\x0al\xfc\x9c"sv, FileKind::pickle},  // torch.save before 1.6
      {"\x80\x04\x95\x0d\0"sv, FileKind::pickle},         // pickle.dump of Python 3
      {"\x1f\x8b\x08\0\0\0\0\0"sv, FileKind::gzip},
      {"\0\0\x08\x03\0\0\xea\x60"sv, FileKind::idx},
      {"\x89PNG\r\n\x1a\n"sv, FileKind::picture},
      {"\xff\xd8\xff\xe0"sv, FileKind::picture},
      {"\x08\x08\x12\x07pytorch"sv, FileKind::onnx},
      {"\x08\x0a:\xf8\x01"sv, FileKind::onnx},
      {"// a model\n\nmodule @mlp {"sv, FileKind::mlir},
      {"func.func @predict("sv, FileKind::mlir},
      {"\x89HDF\r\n\x1a\n"sv, FileKind::hdf5},
      {"ML\xefR\x0dMLIR22"sv, FileKind::mlir_bytecode},
      {"GGUF\3\0\0\0"sv, FileKind::gguf},
      {"\x88\xd8\x34\x01\x01\0\0\0\x10"sv, FileKind::llm_c},
      {"version https://git-lfs.github.com/spec/v1\noid"sv, FileKind::lfs_pointer},
      {"<!DOCTYPE html><title>"sv, FileKind::html},
      {"Dear reader,"sv, FileKind::unknown},
      {"\0\0\0\0\0\0\0\0\0\0\0\0"sv, FileKind::unknown},
  };
  for (const Beginning& beginning : beginnings)
    EXPECT_EQ(static_cast<int>(fileKindOf(beginning.bytes)), static_cast<int>(beginning.kind))
        << ::testing::PrintToString(std::string(beginning.bytes));
}

// However little of a file there is.
TEST(FileKind, ReadsNoFurtherThanTheBytes) {
  const std::string whole[] = {zipOf("archive/data.pkl"), std::string("\x10\0\0\0\0\0\0\0{\"", 10),
                               std::string("\0\0\x08\x03\0\0\0\0", 8), "// a comment\nmodule @m {"};
  for (const std::string& bytes : whole)
    for (size_t length = 0; length <= bytes.size(); ++length)
      (void)explainFileKind(std::string(bytes.substr(0, length)), FileRole::data);
}

TEST(FileKind, TheCureIsForWhatWasWanted) {
  std::string pt = zipOf("archive/data.pkl");
  EXPECT_EQ(explainFileKind(pt, FileRole::weights),
            "; it is a file of PyTorch (.pt): save its state_dict() by safetensors.torch.save_file");
  EXPECT_EQ(explainFileKind(pt, FileRole::model),
            "; it is a file of PyTorch (.pt): export the model by torch.onnx.export and pass that to "
            "gpuc-import-onnx");
  EXPECT_EQ(explainFileKind(pt, FileRole::data),
            "; it is a file of PyTorch (.pt): save each tensor by numpy.save(FILE, tensor.numpy())");
  EXPECT_EQ(explainFileKind("gpucplan", FileRole::weights),
            "; it is a plan of gpuc: gpuc-train, gpuc-run, gpuc-generate and gpuc-inspect take it as PLAN");
  EXPECT_EQ(explainFileKind("", FileRole::plan), "; it is empty");
  EXPECT_EQ(explainFileKind("Dear reader,", FileRole::plan), "");
}

// Text and raw numbers are data: only what neither begins with may be refused as such.
TEST(FileKind, GuessesAreNotCertain) {
  EXPECT_TRUE(isCertain(FileKind::gzip));
  EXPECT_TRUE(isCertain(FileKind::pytorch));
  for (FileKind kind : {FileKind::unknown, FileKind::empty, FileKind::html, FileKind::mlir, FileKind::onnx,
                        FileKind::idx, FileKind::pickle})
    EXPECT_FALSE(isCertain(kind)) << static_cast<int>(kind);
}

}  // namespace
}  // namespace gpuc
