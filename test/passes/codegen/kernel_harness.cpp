#include "test/passes/codegen/kernel_harness.h"

#include "mlir/Parser/Parser.h"

#include <algorithm>
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

Buffer::Buffer(size_t bytes, Wall) : bytes_(bytes), walled_(true) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t pages = (bytes + page - 1) / page * page,
               used = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  void *begin = mmap(nullptr, pages + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_NE(begin, MAP_FAILED);
  auto *first = static_cast<unsigned char *>(begin);
  EXPECT_EQ(mprotect(first + pages, page, PROT_NONE), 0);
  memory_ = {first + pages - used, [=](unsigned char *) { munmap(begin, pages + page); }};
}

void *Buffer::data() const {
  auto address = reinterpret_cast<uintptr_t>(memory_.get());
  return reinterpret_cast<void *>((address + kAlignment - 1) / kAlignment * kAlignment);
}

bool Buffer::intact() const {
  if (walled_)
    return true;
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
  checkRows(arguments, results);
  return results;
}

/// What no row may read, and what no row may leave behind: as an index it is far outside of any table, as a
/// float no number.
constexpr unsigned char kOfOthers = 0xFF, kUntouched = 0x5A;

static Buffer filled(size_t bytes, unsigned char byte) {
  Buffer buffer(bytes);
  std::memset(buffer.data(), byte, bytes);
  return buffer;
}

static unsigned char *partOf(const Buffer &buffer, int64_t row, int64_t rows) {
  return static_cast<unsigned char *>(buffer.data()) + buffer.bytes() / rows * row;
}

/// Whether the part holds what `whole` does there, and the rest is untouched.
static bool isThatPart(const Buffer &part, const Buffer &whole, int64_t row, int64_t rows) {
  const size_t bytes = part.bytes() / rows;
  const unsigned char *begin = partOf(part, row, rows), *first = partOf(part, 0, rows);
  auto untouched = [](unsigned char byte) { return byte == kUntouched; };
  return part.intact() && std::memcmp(begin, partOf(whole, row, rows), bytes) == 0 &&
         std::all_of(first, begin, untouched) && std::all_of(begin + bytes, first + part.bytes(), untouched);
}

void TestKernel::checkRows(const std::vector<Buffer> &arguments, const std::vector<Buffer> &results) {
  const int64_t rows = schedule_.rows;
  if (rows == 0) {
    EXPECT_TRUE(schedule_.byRows.empty());
    return;
  }
  ASSERT_GT(rows, 1);
  ASSERT_EQ(schedule_.tiles % rows, 0);
  ASSERT_EQ(schedule_.byRows.size(), arguments.size() + results.size());
  std::vector<Buffer> own;
  for (size_t i = 0; i < schedule_.byRows.size(); ++i) {
    const bool isResult = i >= arguments.size();
    const Buffer &operand = isResult ? results[i - arguments.size()] : arguments[i];
    ASSERT_TRUE(schedule_.byRows[i] || !isResult) << "result " << i - arguments.size() << " is not cut";
    ASSERT_TRUE(!schedule_.byRows[i] || operand.bytes() % rows == 0) << "operand " << i;
    own.push_back(schedule_.byRows[i] ? filled(operand.bytes(), isResult ? kUntouched : kOfOthers) : operand);
  }
  // Of hundreds, those at either end and some between: what is wrong with one is wrong with its like.
  const int64_t step = std::max<int64_t>(1, (rows - 1) / 16);
  for (int64_t row = 0; row < rows; row = row == rows - 1 ? rows : std::min(row + step, rows - 1)) {
    for (size_t i = 0; i < arguments.size(); ++i)
      if (schedule_.byRows[i])
        std::memcpy(partOf(own[i], row, rows), partOf(arguments[i], row, rows), own[i].bytes() / rows);
    checkRow(row, own, results);
    for (size_t i = 0; i < own.size(); ++i)
      if (schedule_.byRows[i])
        std::memset(partOf(own[i], row, rows), i < arguments.size() ? kOfOthers : kUntouched,
                    own[i].bytes() / rows);
  }
}

void TestKernel::checkRow(int64_t row, const std::vector<Buffer> &own, const std::vector<Buffer> &results) {
  std::vector<void *> operands;
  for (const Buffer &buffer : own)
    operands.push_back(buffer.data());
  const int64_t tiles = schedule_.tiles / schedule_.rows;
  loaded_->find(symbol_)(operands.data(), tiles * row, tiles * (row + 1));
  for (size_t i = 0; i < results.size(); ++i)
    EXPECT_TRUE(isThatPart(own[own.size() - results.size() + i], results[i], row, schedule_.rows))
        << "result " << i << " of row " << row << " of " << schedule_.rows;
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
