//===- VerifyKernels.cpp - What holds of entries that consist of kernels ----===//

#include "passes/Passes.h"
#include "passes/base/AttentionViews.h"
#include "passes/base/Blame.h"
#include "passes/base/Target.h"
#include "passes/codegen/Codegen.h"
#include "passes/kernels/CommandForms.h"
#include "passes/kernels/Epilogues.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace gpuc {
namespace {

/// Whether the region is one kernel, or a product with its epilogue. Attention on CUDA has a form of its own,
/// which its code generator knows.
bool isKernel(ir::FusedOp fused) {
  Block &body = fused.getBody().front();
  return epilogueOf(fused) || succeeded(checkKernel(body)) ||
         llvm::any_of(body, [](Operation &op) { return isAttention(&op); });
}

LogicalResult verify(Block &block, plan::TargetKind target, StringRef name, const Blame &blame) {
  for (Operation &op : block.without_terminator()) {
    std::optional<CommandForm> form = commandFormOf(&op);
    if (!form || (form == CommandForm::attention && target == plan::TargetKind::cuda))
      return blame.report(op.getLoc(),
                          "'" + op.getName().getStringRef() + "' in @" + name +
                              " outside of every kernel, and no command does what it does",
                          "gpuc-fuse");
    if (auto fused = dyn_cast<ir::FusedOp>(op); fused && !isKernel(fused))
      return blame.report(op.getLoc(),
                          "gpuc.fused \"" + fused.getName() + "\" in @" + name + ", which is not one kernel",
                          "gpuc-fuse");
    if (auto scan = dyn_cast<ir::ScanOp>(op); scan && failed(verify(scan.getBlock(), target, name, blame)))
      return failure();
  }
  return success();
}

} // namespace

LogicalResult verifyKernels(ModuleOp module, const Blame &blame) {
  if (failed(verifyEntries(module, blame)))
    return failure();
  auto target = module->getAttrOfType<StringAttr>(kFusedForAttr);
  std::string error;
  FailureOr<Target> kind = Target::parse(target ? target.getValue() : "", error);
  if (failed(kind))
    return blame.report(module.getLoc(), "a module that does not say which target its kernels are for",
                        "gpuc-fuse");
  for (auto function : module.getOps<func::FuncOp>()) {
    if (!function.isPublic())
      return blame.report(function.getLoc(), "@" + function.getName() + " beside the step that it counts for",
                          "gpuc-join-checks");
    if (failed(verify(function.getBody().front(), kind->kind, function.getName(), blame)))
      return failure();
  }
  return success();
}

} // namespace gpuc
