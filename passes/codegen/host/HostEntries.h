//===- HostEntries.h - Functions that hand on parameters --------------------===//
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <map>
#include <string>
#include <vector>

namespace gpuc::codegen {

/// Functions `entry(ptr operands, i64 begin, i64 end)` that call `implementation` with one argument more, a
/// table of numbers. A kernel whose code is another's but for such numbers is a jump of two instructions.
class HostEntries {
public:
  /// The entry's symbol; the same for the same implementation and parameters.
  std::string add(const std::string &implementation, const std::vector<int64_t> &parameters);
  bool empty() const { return symbols_.empty(); }
  mlir::OwningOpRef<mlir::ModuleOp> emit(mlir::MLIRContext *context) const;

private:
  std::map<std::string, std::map<std::vector<int64_t>, std::string>> symbols_; ///< Of each implementation.
};

} // namespace gpuc::codegen
