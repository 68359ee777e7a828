//===- Link.cpp - From objects to a shared one, by lld ----------------------===//

#include "passes/codegen/host/HostMachine.h"

#include "lld/Common/Driver.h"
#include "llvm/Object/ArchiveWriter.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

#include <mutex>

LLD_HAS_DRIVER(elf)

using namespace mlir;

namespace gpuc::codegen {

namespace {
/// A folder of our own that goes away with its files.
class TemporaryFolder {
public:
  ~TemporaryFolder() { llvm::sys::fs::remove_directories(path_); }
  std::error_code create() { return llvm::sys::fs::createUniqueDirectory("gpuc-link", path_); }
  std::string file(StringRef name) const { return (path_ + "/" + name).str(); }

private:
  SmallString<128> path_;
};
} // namespace

namespace {
/// While it lives lld comes back from what is fatal to it (a file it cannot map). Else it would end the
/// process, and its last words, which are ours to print, with it.
struct RecoverFromFatalErrors {
  RecoverFromFatalErrors() { llvm::CrashRecoveryContext::Enable(); }
  ~RecoverFromFatalErrors() { llvm::CrashRecoveryContext::Disable(); }
};
} // namespace

/// lld reads and writes files, and keeps its state in globals: one link at a time, and none after a fatal
/// error.
static bool runLld(StringRef archive, StringRef output, std::string &error) {
  static std::mutex oneAtATime;
  static bool isUsable = true;
  std::lock_guard<std::mutex> lock(oneAtATime);
  if (!isUsable) {
    error = "cannot link kernels after a link of this process failed midway: start a new one";
    return false;
  }
  std::string in = archive.str(), out = output.str();
  // No undefined symbols: a kernel that needs a library is an error here, not in the process that loads it.
  // No build id and no paths: equal objects give equal bytes.
  const char *arguments[] = {"ld.lld",
                             "-shared",
                             "--no-undefined",
                             "--build-id=none",
                             "--hash-style=gnu",
                             "--threads=1",
                             "-z",
                             "max-page-size=4096",
                             "-z",
                             "noexecstack",
                             "-soname=gpuc-kernels",
                             "-Bsymbolic", // kernels call one another directly
                             "--gc-sections",
                             "-o",
                             out.c_str(),
                             "--whole-archive",
                             in.c_str()};
  llvm::raw_string_ostream complaint(error);
  RecoverFromFatalErrors recover;
  lld::Result result = lld::lldMain(arguments, llvm::nulls(), complaint, {{lld::Gnu, &lld::elf::link}});
  isUsable = result.canRunAgain;
  return result.retCode == 0;
}

/// One file of many objects.
static llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> archiveOf(ArrayRef<std::string> objects) {
  std::vector<llvm::NewArchiveMember> members;
  for (const std::string &object : objects)
    members.emplace_back(llvm::MemoryBufferRef(object, "kernels.o"));
  return llvm::writeArchiveToBuffer(members, llvm::SymtabWritingMode::NoSymtab, llvm::object::Archive::K_GNU,
                                    /*Deterministic=*/true, /*Thin=*/false);
}

FailureOr<std::string> linkSharedObject(ArrayRef<std::string> objects, std::string &error) {
  auto archive = archiveOf(objects);
  if (!archive) {
    error = "cannot put kernels together: " + llvm::toString(archive.takeError());
    return failure();
  }
  TemporaryFolder folder;
  if (std::error_code code = folder.create()) {
    error = "cannot make a temporary folder for the linker: " + code.message();
    return failure();
  }
  std::string input = folder.file("kernels.a"), output = folder.file("kernels.so");
  std::error_code code;
  {
    llvm::raw_fd_ostream stream(input, code);
    if (!code)
      stream << (*archive)->getBuffer();
    stream.close(); // or a disk that is full would show only when the stream goes, and end the process
    if (!code)
      code = stream.error();
    stream.clear_error();
  }
  if (code) {
    error = "cannot write " + input + ": " + code.message();
    return failure();
  }
  if (!runLld(input, output, error))
    return failure();
  auto linked = llvm::MemoryBuffer::getFile(output);
  if (!linked) {
    error = "cannot read what lld wrote: " + linked.getError().message();
    return failure();
  }
  return (*linked)->getBuffer().str();
}

} // namespace gpuc::codegen
