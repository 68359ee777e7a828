//===- assemble_test.cpp - The zoo's kernels through ptxas ------------------===//
//
// A kernel that spills registers, or keeps an array in local memory, is slower than it looks and is found
// nowhere else without a GPU.
//
//===----------------------------------------------------------------------===//

#include "test/end-to-end/zoo_plan.h"

#include "runtime/plan/access.h"
#include "test/passes/codegen/cuda_harness.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <regex>
#include <set>
#include <sstream>

namespace gpuc::test {
namespace {

/// The kernels of which ptxas says that they use local memory, a line each; how many it speaks of in
/// `kernels`.
std::string usesOfLocalMemory(const std::string &said, size_t &kernels) {
  const std::regex compiling("Compiling entry function '([^']*)'"), use("^ *[0-9]+ bytes stack frame.*");
  std::string line, kernel, found;
  std::smatch match;
  for (std::istringstream lines(said); std::getline(lines, line);) {
    if (std::regex_search(line, match, compiling)) {
      kernel = match[1];
    } else if (std::regex_match(line, use)) {
      ++kernels;
      if (line.find(" 0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads") == std::string::npos)
        found += kernel + ":" + line + "\n";
    }
  }
  return found;
}

TEST(Ptxas, SpeaksOfLocalMemoryAsTheTestReadsIt) {
  mlir::FailureOr<std::string> ptxas = findPtxas();
  if (failed(ptxas))
    GTEST_SKIP() << "no ptxas on the path or in $CUDA_HOME/bin";
  // An array that is indexed by a parameter cannot lie in registers.
  std::string said = assemble(*ptxas, R"(
.version 8.0
.target sm_80
.address_size 64
.visible .entry indexed(.param .u64 to, .param .u64 at)
{
	.local .align 4 .b8 array[64];
	.reg .b64 %to, %at, %base;
	.reg .b32 %x;
	ld.param.u64 %to, [to];
	ld.param.u64 %at, [at];
	mov.u64 %base, array;
	add.s64 %base, %base, %at;
	st.local.u32 [%base], 7;
	ld.local.u32 %x, [array+4];
	st.global.u32 [%to], %x;
	ret;
}
)",
                              "sm_80");
  size_t kernels = 0;
  EXPECT_EQ(usesOfLocalMemory(said, kernels).find("indexed:"), 0u) << said;
  EXPECT_EQ(kernels, 1u);
}

class Assembled : public testing::TestWithParam<ZooSpec> {};

/// With GPUC_ALL_PLANS those of each generation; else the newest of them, as ptxas takes its time.
std::vector<std::string> architectures() {
  return std::getenv("GPUC_ALL_PLANS") ? std::vector<std::string>{"sm_80", "sm_89", "sm_90"}
                                       : std::vector<std::string>{"sm_90"};
}

// A model a line.
INSTANTIATE_TEST_SUITE_P(
    Zoo, Assembled,
    testing::Values(ZooSpec{"mlp", {}}, ZooSpec{"mlp", {"dropout=0.5"}}, ZooSpec{"mlp", {"dtype=f64"}},
                    ZooSpec{"linear-regression", {}}, ZooSpec{"linear-regression", {"dtype=f64"}},
                    ZooSpec{"convnet", {}}, ZooSpec{"convnet", {"dtype=f64"}},
                    ZooSpec{"convnet", {"precision=bf16"}}, ZooSpec{"gpt2", {"layers=1", "precision=fp16"}},
                    ZooSpec{"gpt2", {"layers=1", "precision=bf16", "dropout=0.1"}},
                    ZooSpec{"resnet18", {"size=64", "width=16", "batch=8"}},
                    ZooSpec{"resnet18", {"size=64", "width=16", "batch=512", "precision=bf16"}},
                    ZooSpec{"rnn-classifier", {"hidden=32"}},
                    ZooSpec{"rnn-classifier", {"cell=gru", "hidden=32", "dropout=0.2"}},
                    ZooSpec{"lstm-generator", {"hidden=32", "length=16"}},
                    ZooSpec{"transformer", {"width=64", "layers=1", "batch=4"}},
                    ZooSpec{"gpt2", {"layers=1"}}),
    [](const auto &info) { return nameOf(info.param); });

TEST_P(Assembled, UsesNoLocalMemory) {
  mlir::FailureOr<std::string> ptxas = findPtxas();
  if (failed(ptxas))
    GTEST_SKIP() << "no ptxas on the path or in $CUDA_HOME/bin";
  for (const std::string &architecture : architectures()) {
    Result<std::unique_ptr<ZooPlan>> compiled = compileZooModel(GetParam(), "cuda:" + architecture);
    ASSERT_TRUE(compiled.ok()) << compiled.message();
    Result<Plan> plan = Plan::parse((*compiled)->bytes);
    ASSERT_TRUE(plan.ok()) << plan.message();
    size_t kernels = 0;
    for (const fb::Code *code : each(plan->root().code()))
      if (code->kind() == fb::CodeKind::ptx) {
        const auto &data = *code->data();
        std::string said =
            assemble(*ptxas, {reinterpret_cast<const char *>(data.data()), data.size()}, architecture);
        EXPECT_EQ(usesOfLocalMemory(said, kernels), "") << architecture;
      }
    std::set<std::string_view> symbols; // equal kernels share one
    for (const fb::Kernel *kernel : each(plan->root().kernels()))
      symbols.insert(textOf(kernel->symbol()));
    EXPECT_EQ(kernels, symbols.size()) << "ptxas was asked about each";
  }
}

} // namespace
} // namespace gpuc::test
