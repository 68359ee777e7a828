// Attention's kernels for GPUs as code: what PTX holds, what ptxas makes of it, how they are launched. Their
// numbers are those of test/gradients (kernels_test, attention_paths_test, fake_gpu_attention_test).
#include "test/passes/codegen/cuda_harness.h"

#include <gtest/gtest.h>
#include <regex>

using namespace gpuc;
using namespace gpuc::test;

namespace {

enum class Part { Forward, Query, KeyValue };

/// One of attention's three kernels.
struct Case {
  std::string name;
  Part part;
  std::string element = "f32";
  int64_t batch = 2, heads = 4, groups = 2, queries = 200, keys = 128, width = 64, valueWidth = 64;
  std::string attributes = ""; ///< With dropout the seed and the step are arguments.
  std::string mask = "";       ///< Its type.

  std::string tensor(std::initializer_list<int64_t> shape, const std::string &type) const {
    std::string text = "tensor<";
    for (int64_t extent : shape)
      text += std::to_string(extent) + "x";
    return text + type + ">";
  }
  std::string q() const { return tensor({batch, heads, queries, width}, element); }
  std::string k() const { return tensor({batch, groups, keys, width}, element); }
  std::string v() const { return tensor({batch, groups, keys, valueWidth}, element); }
  std::string y() const { return tensor({batch, heads, queries, valueWidth}, element); }
  std::string log() const { return tensor({batch, heads, queries}, "f32"); }

  std::vector<std::string> arguments() const {
    std::vector<std::string> types = {q(), k(), v()};
    if (part != Part::Forward)
      types.insert(types.end(), {y(), y(), log()});
    if (!mask.empty())
      types.push_back(mask);
    if (attributes.find("dropout") != std::string::npos)
      types.insert(types.end(), {"tensor<i64>", "tensor<i64>"});
    return types;
  }
  std::vector<std::string> results() const {
    return part == Part::Forward ? std::vector{y(), log()}
           : part == Part::Query ? std::vector{q()}
                                 : std::vector{k(), v()};
  }
  std::string body() const {
    std::string type = mask.empty() ? "" : ", " + mask;
    if (part == Part::Forward)
      return "%0, %1 = gpuc.attention %a0, %a1, %a2" + std::string(mask.empty() ? "" : " mask %a3") + " " +
             attributes + " : (" + q() + ", " + k() + ", " + v() + type + ") -> (" + y() + ", " + log() +
             ")\ngpuc.yield %0, %1 : " + y() + ", " + log();
    bool isCotangent = !mask.empty() && mask.find("xi1") == std::string::npos;
    std::string op = std::string("%0, %1, %2") + (isCotangent ? ", %3" : "") +
                     " = gpuc.attention_gradient %a3 of %a4, %a5 query %a0 key %a1 value %a2" +
                     (mask.empty() ? "" : " mask %a6") + " " + attributes + " : (" + y() + ", " + y() + ", " +
                     log() + ", " + q() + ", " + k() + ", " + v() + type + ") -> (" + q() + ", " + k() +
                     ", " + v() + (isCotangent ? type : "") + ")\n";
    return op + (part == Part::Query ? "gpuc.yield %0 : " + q() : "gpuc.yield %1, %2 : " + k() + ", " + v());
  }
};

/// The most registers that a kernel may take: the widest heads, with tails, everything to be asked for.
std::vector<Case> cases() {
  std::vector<Case> cases = {
      {"forward", Part::Forward},
      {"query", Part::Query},
      {"key_value", Part::KeyValue},
      {"forward_causal", Part::Forward, "f32", 2, 4, 4, 128, 128, 64, 64, "causal"},
      {"query_causal", Part::Query, "f32", 2, 4, 4, 128, 128, 64, 64, "causal"},
      {"key_value_causal", Part::KeyValue, "f32", 2, 4, 4, 128, 128, 64, 64, "causal"},
  };
  for (const char *element : {"f32", "bf16", "f16"})
    for (auto [name, part] :
         {std::pair{"forward", Part::Forward}, {"query", Part::Query}, {"key_value", Part::KeyValue}}) {
      cases.push_back({std::string(name) + "_everything_" + element, part, element, 2, 6, 3, 77, 101, 128,
                       123, "causal dropout 0.1 id 5", std::string("tensor<2x6x77x101x") + element + ">"});
      cases.push_back({std::string(name) + "_narrow_" + element, part, element, 1, 2, 2, 33, 64, 20, 48,
                       "dropout 0.1 id 5", "tensor<33x64xi1>"});
    }
  return cases;
}

class CudaAttention : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Cuda, CudaAttention, testing::ValuesIn(cases()),
                         [](auto info) { return info.param.name; });

TEST_P(CudaAttention, IsAKernelWithoutSpills) {
  KernelText text(GetParam().arguments(), GetParam().results(), GetParam().body());
  CudaSchedule schedule = scheduleCudaKernel(text.block());
  const Case &c = GetParam();
  uint32_t queries = static_cast<uint32_t>((c.queries + 63) / 64),
           keys = static_cast<uint32_t>((c.keys + 63) / 64);
  EXPECT_EQ(schedule.grid, static_cast<uint32_t>(c.batch) * (c.part == Part::KeyValue
                                                                 ? static_cast<uint32_t>(c.groups) * keys
                                                                 : static_cast<uint32_t>(c.heads) * queries));
  EXPECT_EQ(schedule.block, 256u);
  mlir::FailureOr<std::string> ptxas = findPtxas();
  for (const CudaTarget &target : CudaTarget::known().take_front(3)) { // sm_80, sm_89, sm_90
    std::string ptx = compileForCuda(text, target).ptx;
    std::smatch found;
    EXPECT_FALSE(std::regex_search(
        ptx, found, std::regex("\\s(add|sub|mul|mad|div|sqrt)\\.(f16|bf16|f32|f64|full|approx)[^\n]*")))
        << found.str();
    EXPECT_EQ(ptx.find("atom."), std::string::npos) << "sums whose order nobody fixes";
    EXPECT_EQ(ptx.find(".extern"), std::string::npos);
    EXPECT_NE(ptx.find("ld.shared.v4"), std::string::npos) << "four numbers an access";
    if (failed(ptxas))
      continue;
    std::string said = assemble(*ptxas, ptx, target.architecture);
    // Narrow heads keep a handful of numbers too many for sm_89.
    const int most = target.architecture == "sm_89" ? 32 : 0;
    ASSERT_TRUE(std::regex_search(said, found, std::regex("([0-9]+) bytes spill stores"))) << said;
    EXPECT_LE(std::stoi(found[1]), most) << said;
    ASSERT_TRUE(std::regex_search(said, found, std::regex("Used ([0-9]+) registers"))) << said;
    RecordProperty(target.architecture, found[1].str());
  }
}

} // namespace
