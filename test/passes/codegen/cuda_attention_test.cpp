// Attention's kernels for GPUs as code: what PTX holds, what ptxas makes of it, how they are launched. Their
// numbers are those of cuda_attention_numbers_test.cpp and of test/gradients (kernels_test,
// attention_paths_test, fake_gpu_attention_test).
#include "test/passes/codegen/attention_kernel.h"
#include "test/passes/codegen/cuda_harness.h"

#include <gtest/gtest.h>
#include <regex>

using namespace gpuc;
using namespace gpuc::test;

namespace {

using Case = AttentionKernelCase;
using Part = AttentionKernelCase::Part;

/// The most registers that a kernel may take: the widest heads, with tails, everything to be asked for; and
/// what most models have.
std::vector<Case> cases() {
  std::vector<Case> cases = {
      {"forward", Part::Forward},
      {"query", Part::Query},
      {"key_value", Part::KeyValue},
  };
  for (auto [part, kind] :
       {std::pair{"forward", Part::Forward}, {"query", Part::Query}, {"key_value", Part::KeyValue}}) {
    const std::string prefix = std::string(part) + "_", mask = "tensor<2x6x77x101x";
    for (const std::string element : {"f32", "bf16"}) {
      cases.push_back({prefix + "everything_" + element, kind, element, 2, 6, 3, 77, 101, 128, 123,
                       "causal dropout 0.1 id 5", mask + element + ">"});
      cases.push_back({prefix + "narrow_" + element, kind, element, 1, 2, 2, 33, 64, 20, 48,
                       "dropout 0.1 id 5", "tensor<33x64xi1>"});
      cases.push_back({prefix + "causal_" + element, kind, element, 2, 4, 4, 128, 128, 64, 64, "causal"});
    }
    cases.push_back({prefix + "wide", kind, "f16", 2, 4, 4, 128, 128, 128, 128, "causal"});
    cases.push_back(
        {prefix + "wide_masked", kind, "bf16", 2, 6, 3, 77, 101, 128, 120, "causal", mask + "bf16>"});
    cases.push_back({prefix + "masked", kind, "bf16", 2, 6, 3, 77, 101, 63, 64, "causal", mask + "bf16>"});
    if (kind == Part::Forward)
      cases.push_back({prefix + "dropout", kind, "bf16", 2, 6, 3, 77, 101, 128, 128,
                       "causal dropout 0.1 id 5", mask + "bf16>"});
  }
  return cases;
}

class CudaAttentionKernel : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Cuda, CudaAttentionKernel, testing::ValuesIn(cases()),
                         [](auto info) { return info.param.name; });

TEST_P(CudaAttentionKernel, IsAKernelWithoutSpills) {
  KernelText text(GetParam().arguments(), GetParam().results(), GetParam().body());
  mlir::Operation *kernel = text.block().getParentOp();
  kernel->setAttr(kAlignedAttr, mlir::UnitAttr::get(kernel->getContext()));
  CudaSchedule schedule = scheduleCudaKernel(text.block());
  const Case &c = GetParam();
  uint32_t queries = static_cast<uint32_t>((c.queries + 63) / 64),
           keys = static_cast<uint32_t>((c.keys + 63) / 64);
  EXPECT_EQ(schedule.grid, static_cast<uint32_t>(c.batch) * (c.part == Part::KeyValue
                                                                 ? static_cast<uint32_t>(c.groups) * keys
                                                                 : static_cast<uint32_t>(c.heads) * queries));
  EXPECT_EQ(schedule.block, c.onTensorCores() ? 128u : 256u);
  mlir::FailureOr<std::string> ptxas = findPtxas();
  for (const CudaTarget &target : CudaTarget::known().take_front(3)) { // sm_80, sm_89, sm_90
    std::string ptx = compileForCuda(text, target).ptx;
    std::smatch found;
    EXPECT_FALSE(std::regex_search(
        ptx, found, std::regex("\\s(add|sub|mul|mad|div|sqrt)\\.(f16|bf16|f32|f64|full|approx)[^\n]*")))
        << found.str();
    EXPECT_EQ(ptx.find("atom."), std::string::npos) << "sums whose order nobody fixes";
    EXPECT_EQ(ptx.find(".extern"), std::string::npos);
    EXPECT_NE(ptx.find(c.onTensorCores() ? "ldmatrix" : "ld.shared.v4"), std::string::npos)
        << "16 bytes an access";
    const std::string product =
        "mma.sync.aligned.m16n8k16.row.col.f32." + c.element + "." + c.element + ".f32";
    EXPECT_EQ(ptx.find(product) != std::string::npos, c.onTensorCores());
    if (failed(ptxas))
      continue;
    std::string said = assemble(*ptxas, ptx, target.architecture);
    // Narrow heads keep a handful of numbers too many for sm_80 and sm_89, and so does a result of 16 bits,
    // of which four blocks are to fit a multiprocessor.
    const bool keepsSome = c.onTensorCores() && c.part == Part::Forward;
    const int most = keepsSome ? 48 : target.architecture == "sm_90" ? 0 : 32;
    ASSERT_TRUE(std::regex_search(said, found, std::regex("([0-9]+) bytes spill stores"))) << said;
    EXPECT_LE(std::stoi(found[1]), most) << said;
    ASSERT_TRUE(std::regex_search(said, found, std::regex("Used ([0-9]+) registers"))) << said;
    RecordProperty(target.architecture, found[1].str());
  }
}

TEST(CudaAttention, CopiesTheNextTileWhileThisOneIsComputed) {
  auto ptxOf = [](Part part, int width) {
    const Case c{"", part, "bf16", 2, 4, 4, 128, 128, width, width, "causal"};
    KernelText text(c.arguments(), c.results(), c.body());
    mlir::Operation *kernel = text.block().getParentOp();
    kernel->setAttr(kAlignedAttr, mlir::UnitAttr::get(kernel->getContext()));
    return compileForCuda(text, *CudaTarget::parse("sm_80")).ptx;
  };
  for (Part part : {Part::Forward, Part::Query, Part::KeyValue})
    EXPECT_NE(ptxOf(part, 64).find("cp.async.cg.shared.global"), std::string::npos);
  // 48 KiB have no room for two tiles of 64 keys by 128; of 48 columns threads would not have as many copies.
  EXPECT_EQ(ptxOf(Part::Forward, 128).find("cp.async"), std::string::npos);
  EXPECT_EQ(ptxOf(Part::Forward, 48).find("cp.async"), std::string::npos);
}

TEST(CudaAttention, ReadsElementsOneByOneWhereOperandsAreNotAligned) {
  const Case c{"", Part::KeyValue, "bf16", 2, 4, 4, 128, 128, 64, 64, "causal"};
  KernelText text(c.arguments(), c.results(), c.body());
  const CudaTarget target = *CudaTarget::parse("sm_90");
  EXPECT_EQ(compileForCuda(text, target).ptx.find("ld.global.v4"), std::string::npos);
  mlir::Operation *kernel = text.block().getParentOp();
  kernel->setAttr(kAlignedAttr, mlir::UnitAttr::get(kernel->getContext()));
  EXPECT_NE(compileForCuda(text, target).ptx.find("ld.global.v4"), std::string::npos);
}

} // namespace
