#include "test/passes/codegen/kernel_harness.h"

#include "mlir/Parser/Parser.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace mlir;

namespace gpuc::test {

constexpr size_t kAlignment = 64;
constexpr size_t kGuardBytes = 256;
constexpr unsigned char kGuard = 0xA5;

Buffer::Buffer(size_t bytes) : bytes_(bytes), memory_(new unsigned char[bytes + kAlignment + kGuardBytes]) {
  std::memset(memory_.get(), kGuard, bytes + kAlignment + kGuardBytes);
}

void *Buffer::data() const {
  auto address = reinterpret_cast<uintptr_t>(memory_.get());
  return reinterpret_cast<void *>((address + kAlignment - 1) / kAlignment * kAlignment);
}

bool Buffer::intact() const {
  auto *end = static_cast<unsigned char *>(data()) + bytes_;
  for (size_t i = 0; i < kGuardBytes; ++i)
    if (end[i] != kGuard)
      return false;
  return true;
}

LoadedObject::LoadedObject(const std::string &bytes) {
  // The file stays open: dlopen takes a path that is loaded already for the same object, and numbers are used
  // again.
  file_ = memfd_create("kernels", MFD_CLOEXEC);
  EXPECT_EQ(write(file_, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  handle_ = dlopen(("/proc/self/fd/" + std::to_string(file_)).c_str(), RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(handle_, nullptr) << dlerror();
}

LoadedObject::~LoadedObject() {
  if (handle_)
    dlclose(handle_);
  close(file_);
}

LoadedObject::Function LoadedObject::find(const std::string &symbol) const {
  return reinterpret_cast<Function>(dlsym(handle_, symbol.c_str()));
}

static std::string joined(const std::vector<std::string> &parts) {
  std::string text;
  for (const std::string &part : parts)
    text += (text.empty() ? "" : ", ") + part;
  return text;
}

KernelText::KernelText(const std::vector<std::string> &argumentTypes,
                       const std::vector<std::string> &resultTypes, const std::string &body)
    : argumentTypes_(argumentTypes.size()) {
  context_.loadDialect<gpuc::ir::GpucDialect, func::FuncDialect>();
  std::vector<std::string> outer, inner, names;
  for (size_t i = 0; i < argumentTypes.size(); ++i) {
    outer.push_back("%o" + std::to_string(i) + ": " + argumentTypes[i]);
    inner.push_back("%a" + std::to_string(i) + ": " + argumentTypes[i]);
    names.push_back("%o" + std::to_string(i));
  }
  std::string results = "(" + joined(resultTypes) + ")";
  std::string text = "func.func @f(" + joined(outer) + ") -> " + results + " {\n  %r" +
                     (resultTypes.size() > 1 ? ":" + std::to_string(resultTypes.size()) : "") +
                     " = gpuc.fused \"kernel\" (" + joined(names) + ") : (" + joined(argumentTypes) +
                     ") -> " + results + " {\n^bb0" + (inner.empty() ? "" : "(" + joined(inner) + ")") +
                     ":\n" + body + "\n}\n  return ";
  for (size_t i = 0; i < resultTypes.size(); ++i)
    text += (i ? ", %r" : "%r") + (resultTypes.size() > 1 ? "#" + std::to_string(i) : std::string());
  text += " : " + joined(resultTypes) + "\n}\n";
  module_ = parseSourceString<ModuleOp>(text, &context_);
  if (!module_)
    ADD_FAILURE() << "cannot parse:\n" << text;
}

Block &KernelText::block() {
  Block *block = nullptr;
  module_->walk([&](gpuc::ir::FusedOp fused) { block = &fused.getBody().front(); });
  return *block;
}

std::vector<size_t> KernelText::resultBytes() {
  std::vector<size_t> bytes;
  for (Value value : block().getTerminator()->getOperands())
    bytes.push_back(gpuc::ir::sizeInBytes(value.getType()));
  return bytes;
}

std::vector<HostTarget> testTargets() {
  std::vector<HostTarget> targets{*HostTarget::parse("x86-64-v3")};
  if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl"))
    targets.push_back(*HostTarget::parse("x86-64-v4"));
  return targets;
}

TestKernel::TestKernel(const std::vector<std::string> &argumentTypes,
                       const std::vector<std::string> &resultTypes, const std::string &body,
                       const HostTarget &target)
    : text_(argumentTypes, resultTypes, body) {
  schedule_ = scheduleHostKernel(text_.block(), target);
  auto compiled =
      compileHostKernels({KernelSource{"kernel", &text_.block(), text_.block().front().getLoc()}}, target);
  if (failed(compiled)) {
    ADD_FAILURE() << "does not compile:\n" << body;
    return;
  }
  object_ = compiled->object;
  symbol_ = compiled->symbols.front();
  loaded_ = std::make_unique<LoadedObject>(object_);
}

std::vector<Buffer> TestKernel::run(const std::vector<Buffer> &arguments, bool scattered) {
  std::vector<Buffer> results;
  for (size_t bytes : text_.resultBytes())
    results.emplace_back(bytes);
  std::vector<void *> operands;
  for (const Buffer &buffer : arguments)
    operands.push_back(buffer.data());
  for (const Buffer &buffer : results)
    operands.push_back(buffer.data());
  auto function = loaded_->find(symbol_);
  if (!scattered)
    function(operands.data(), 0, schedule_.tiles);
  else
    for (int64_t tile = schedule_.tiles; tile-- > 0;)
      function(operands.data(), tile, tile + 1);
  for (const Buffer &buffer : results)
    EXPECT_TRUE(buffer.intact()) << "wrote behind the end of a result";
  return results;
}

std::vector<Buffer> TestKernel::runInPlace(std::vector<Buffer> &arguments, unsigned argument,
                                           unsigned result) {
  std::vector<Buffer> results;
  for (size_t bytes : text_.resultBytes())
    results.emplace_back(bytes);
  std::vector<void *> operands;
  for (const Buffer &buffer : arguments)
    operands.push_back(buffer.data());
  for (size_t i = 0; i < results.size(); ++i)
    operands.push_back(i == result ? arguments[argument].data() : results[i].data());
  loaded_->find(symbol_)(operands.data(), 0, schedule_.tiles);
  results[result] = arguments[argument];
  return results;
}

} // namespace gpuc::test
