// What windows read that has no image itself, as a channel's factor. What pooling computes is held by the
// registry (test/gradients/ConvCases.cpp).
#include "passes/codegen/host/HostKernel.h"
#include "test/passes/codegen/kernel_harness.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <algorithm>
#include <gtest/gtest.h>

using namespace gpuc;
using namespace gpuc::test;

namespace {

constexpr int64_t kChannels = 3, kRows = 5, kColumns = 19;

/// A layer scale before the mean over 3×3, as its input's gradient has it.
const char *const kScaledMeans = R"(
    %factor = gpuc.broadcast %a1 dims [1] : tensor<3xf32> to tensor<1x3x5x19xf32>
    %scaled = gpuc.mul %a0, %factor : tensor<1x3x5x19xf32>
    %y = gpuc.avg_pool2d_gradient %scaled window [3, 3] padding [1, 1, 1, 1] exclude_padding : (tensor<1x3x5x19xf32>) -> tensor<1x3x5x19xf32>
    gpuc.yield %y : tensor<1x3x5x19xf32>)";
const std::vector<std::string> kArguments = {"tensor<1x3x5x19xf32>", "tensor<3xf32>"};
const std::vector<std::string> kResults = {"tensor<1x3x5x19xf32>"};

TEST(Windows, AChannelsFactorIsOneNumber) {
  KernelText text(kArguments, kResults, kScaledMeans);
  mlir::MLIRContext context;
  context.loadDialect<mlir::arith::ArithDialect, mlir::func::FuncDialect, mlir::LLVM::LLVMDialect,
                      mlir::math::MathDialect, mlir::scf::SCFDialect, mlir::vector::VectorDialect>();
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::ModuleOp::create(mlir::UnknownLoc::get(&context));
  codegen::emitHostKernel(*module, "kernel", text.block(), *HostTarget::parse("x86-64-v4"));
  module->walk([&](mlir::LLVM::masked_gather) { ADD_FAILURE() << "a gather of what does not vary"; });
}

/// How many elements of so many a window of three around `position` has.
float widthAt(int64_t position, int64_t extent) {
  return static_cast<float>(std::min(position + 1, extent - 1) - std::max<int64_t>(position - 1, 0) + 1);
}

/// A row at a time, from the last window to the first, as docs/numerics.md says.
std::vector<float> expectedOf(const std::vector<float> &x, const std::vector<float> &factors) {
  std::vector<float> y(x.size());
  for (int64_t channel = 0; channel < kChannels; ++channel)
    for (int64_t at = 0; at < kRows * kColumns; ++at) {
      const int64_t row = at / kColumns, column = at % kColumns;
      float sum = 0;
      for (int64_t r = std::min(row + 1, kRows - 1); r >= std::max<int64_t>(row - 1, 0); --r)
        for (int64_t c = std::min(column + 1, kColumns - 1); c >= std::max<int64_t>(column - 1, 0); --c)
          sum += x[(channel * kRows + r) * kColumns + c] * factors[channel] /
                 (widthAt(r, kRows) * widthAt(c, kColumns));
      y[channel * kRows * kColumns + at] = sum;
    }
  return y;
}

TEST(Windows, ScaledMeansGoBackAsByPlainLoops) {
  std::vector<float> x(kChannels * kRows * kColumns), factors = {0.5F, -3, 7};
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>((i * 37) % 101) / 64 - 0.7F;
  for (const HostTarget &target : testTargets()) {
    TestKernel kernel(kArguments, kResults, kScaledMeans, target);
    const std::vector<float> expected = expectedOf(x, factors);
    for (bool scattered : {false, true}) {
      const auto results = kernel.run({Buffer::walled(x), Buffer::of(factors)}, scattered);
      EXPECT_EQ(results[0].values<float>(), expected);
    }
  }
}

} // namespace
