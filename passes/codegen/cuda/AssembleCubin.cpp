//===- AssembleCubin.cpp - PTX to machine code through ptxas ----------------===//

#include "passes/codegen/cuda/CudaMachine.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"

using namespace mlir;

namespace gpuc {

FailureOr<std::string> findPtxas() {
  if (std::optional<std::string> home = llvm::sys::Process::GetEnv("CUDA_HOME")) {
    SmallString<128> path(*home);
    llvm::sys::path::append(path, "bin", "ptxas");
    if (llvm::sys::fs::can_execute(path))
      return path.str().str();
  }
  if (llvm::ErrorOr<std::string> path = llvm::sys::findProgramByName("ptxas"))
    return *path;
  return failure();
}

namespace codegen {
namespace {

/// A file in the system's temporary folder, removed at the end.
class TemporaryFile {
public:
  explicit TemporaryFile(StringRef suffix) {
    if (!llvm::sys::fs::createTemporaryFile("gpuc", suffix, path_))
      remover_.setFile(path_);
  }
  StringRef path() const { return path_; }
  bool exists() const { return !path_.empty(); }
  std::string contents() const {
    auto buffer = llvm::MemoryBuffer::getFile(path_);
    return buffer ? (*buffer)->getBuffer().str() : std::string();
  }
  bool write(StringRef bytes) const {
    std::error_code failed;
    llvm::raw_fd_ostream stream(path_, failed);
    if (!failed)
      stream << bytes;
    stream.close();
    bool bad = failed || stream.has_error();
    stream.clear_error();
    return !bad;
  }

private:
  SmallString<128> path_;
  llvm::FileRemover remover_;
};

} // namespace

FailureOr<std::string> assembleCubin(StringRef ptxas, StringRef ptx, const CudaTarget &target,
                                     std::string &error) {
  TemporaryFile source("ptx"), result("cubin"), log("log");
  if (!source.exists() || !result.exists() || !log.exists() || !source.write(ptx)) {
    error = "cannot write temporary files for ptxas: is the disk full?";
    return failure();
  }
  // No contraction here either, though LLVM's PTX names the rounding of each operation and so permits none.
  std::string architecture = "-arch=" + target.architecture;
  StringRef arguments[] = {ptxas, architecture, "--fmad=false", "-O3", source.path(), "-o", result.path()};
  std::optional<StringRef> redirects[] = {"", log.path(), log.path()};
  std::string failure;
  int status = llvm::sys::ExecuteAndWait(ptxas, arguments, std::nullopt, redirects, 0, 0, &failure);
  std::string cubin = result.contents();
  if (status == 0 && !cubin.empty())
    return cubin;
  error = (ptxas + " failed: " + (failure.empty() ? StringRef(log.contents()).trim().str() : failure)).str();
  std::replace(error.begin(), error.end(), '\n', ' ');
  return mlir::failure();
}

} // namespace codegen
} // namespace gpuc
