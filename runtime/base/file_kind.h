// What a file is by its first bytes, for errors that say so: a .pt where weights belong, a plan as data.
#pragma once

#include <string>
#include <string_view>

namespace gpuc {

/// Kinds that stand apart by their first bytes.
enum class FileKind {
  unknown,
  empty,
  plan,
  safetensors,
  npy,
  npz,
  pytorch,
  pickle,
  zip,
  gzip,
  idx,
  picture,
  onnx,
  mlir,
  hdf5,
  mlir_bytecode,
  gguf,
  llm_c,
  lfs_pointer,
  html,
};

/// What a file was taken for.
enum class FileRole {
  plan,
  model,    // .mlir, or .onnx
  weights,  // safetensors
  data,     // arrays, pictures, text
};

/// The kind that `bytes`, a file's or its beginning, tell. Kinds of text (onnx, mlir, html, lfs_pointer, and
/// idx with its zeros) are guesses: good to explain an error by, not to make one.
FileKind fileKindOf(std::string_view bytes);

/// Whether the kind's magic number is long and odd enough that neither text nor raw numbers begin with it.
bool isCertain(FileKind kind);

/// "; it is a NumPy array (.npy): …" with what to do instead, or "" for what is not known. It ends an error
/// which says that the file is not what `taken_for` wants.
std::string explainFileKind(std::string_view bytes, FileRole taken_for);

}  // namespace gpuc
