// Compiles one kernel from text, loads it, runs it on buffers with guarded ends.
#pragma once

#include "dialects/gpuc/GpucOps.h"
#include "passes/codegen/host/HostCode.h"

#include "mlir/IR/BuiltinOps.h"

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace gpuc::test {

/// Memory for one tensor, aligned to 64 bytes, with a pattern behind its end. Copies share it.
class Buffer {
public:
  explicit Buffer(size_t bytes);
  template <typename T> static Buffer of(const std::vector<T> &values) {
    Buffer buffer(values.size() * sizeof(T));
    if (!values.empty())
      std::memcpy(buffer.data(), values.data(), buffer.bytes());
    return buffer;
  }
  /// The same where reading behind the last 64 bytes that hold values is a fault.
  template <typename T> static Buffer walled(const std::vector<T> &values) {
    Buffer buffer(values.size() * sizeof(T), Wall());
    std::memcpy(buffer.data(), values.data(), buffer.bytes());
    return buffer;
  }
  void *data() const;
  size_t bytes() const { return bytes_; }
  template <typename T> std::vector<T> values() const {
    std::vector<T> result(bytes_ / sizeof(T));
    if (!result.empty())
      std::memcpy(result.data(), data(), bytes_);
    return result;
  }
  /// Nothing was written behind the end.
  bool intact() const;

private:
  struct Wall {};
  Buffer(size_t bytes, Wall);

  size_t bytes_;
  bool walled_ = false;
  std::shared_ptr<unsigned char[]> memory_;
};

/// A shared object in memory, opened.
class LoadedObject {
public:
  explicit LoadedObject(const std::string &bytes);
  ~LoadedObject();
  LoadedObject(const LoadedObject &) = delete;
  using Function = void (*)(void *const *, int64_t, int64_t);
  Function find(const std::string &symbol) const;

private:
  int file_ = -1;
  void *handle_ = nullptr;
};

/// A module that holds one gpuc.fused with arguments %a0, %a1, … and the given body, which ends in a
/// gpuc.yield.
class KernelText {
public:
  KernelText(const std::vector<std::string> &argumentTypes, const std::vector<std::string> &resultTypes,
             const std::string &body);
  mlir::Block &block();
  size_t arguments() const { return argumentTypes_; }
  std::vector<size_t> resultBytes();

private:
  size_t argumentTypes_;
  mlir::MLIRContext context_;
  mlir::OwningOpRef<mlir::ModuleOp> module_;
};

/// The CPUs that tests compile for: those of {x86-64-v3, x86-64-v4} that this machine can run.
std::vector<HostTarget> testTargets();

/// A compiled kernel, ready to run.
class TestKernel {
public:
  TestKernel(const std::vector<std::string> &argumentTypes, const std::vector<std::string> &resultTypes,
             const std::string &body, const HostTarget &target);
  /// Runs all tiles in one call, or one by one in the order of a stride when `scattered`. If the kernel has
  /// rows, checks that each of them alone makes its part of the results from its part of what is cut.
  std::vector<Buffer> run(const std::vector<Buffer> &arguments, bool scattered = false);
  /// Runs with result `result` in the buffer of argument `argument`.
  std::vector<Buffer> runInPlace(std::vector<Buffer> &arguments, unsigned argument, unsigned result);
  const KernelSchedule &schedule() const { return schedule_; }
  KernelText &text() { return text_; }
  const std::string &object() const { return object_; }

private:
  void checkRows(const std::vector<Buffer> &arguments, const std::vector<Buffer> &results);
  /// Runs row `row` on `own`, of which each operand that is cut holds the row's part alone.
  void checkRow(int64_t row, const std::vector<Buffer> &own, const std::vector<Buffer> &results);

  KernelText text_;
  KernelSchedule schedule_;
  std::string object_, symbol_;
  std::unique_ptr<LoadedObject> loaded_;
};

} // namespace gpuc::test
