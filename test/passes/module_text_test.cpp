//===- module_text_test.cpp - Text that would end the parser --------------===//

#include "passes/Compiler.h"
#include "passes/ModuleText.h"

#include "runtime/base/file.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace gpuc {
namespace {

std::string repeated(const std::string &text, int count) {
  std::string whole;
  for (int i = 0; i < count; ++i)
    whole += text;
  return whole;
}

std::string errorOf(const std::string &text) { return checkModuleText(text, "m.mlir").message(); }

TEST(ModuleText, BracketsMayBeNestedSoDeepAndNoDeeper) {
  for (auto [open, close] : {std::pair("[", "]"), {"(", ")"}, {"{", "}"}, {"tuple<", ">"}}) {
    EXPECT_EQ(errorOf(repeated(open, 256) + repeated(close, 256)), "");
    const std::string deep = "module {\n" + repeated(open, 256) + repeated(close, 256);
    EXPECT_NE(errorOf(deep).find("m.mlir:2:"), std::string::npos) << errorOf(deep);
    EXPECT_NE(errorOf(deep).find("this bracket is nested in 256 others"), std::string::npos);
  }
}

TEST(ModuleText, CommentsStringsAndArrowsNestNothing) {
  EXPECT_EQ(
      errorOf("// " + repeated("[", 1000) + "\n\"" + repeated("{\\\"", 1000) + "\"" + repeated("->", 1000)),
      "");
  EXPECT_NE(errorOf("\"\" " + repeated("[", 1000)), "");
  EXPECT_NE(errorOf("// \n" + repeated("[", 1000)), "");
}

TEST(ModuleText, AliasesStandForWhatIsInThem) {
  std::string doubling = "#a0 = [1, 2]\n", chain = "#loc0 = loc(\"a\")\n", many = "#loc = loc(\"a\")\n";
  for (int i = 1; i <= 300; ++i) {
    const std::string name = std::to_string(i), former = std::to_string(i - 1);
    chain += "#loc" + name + " = loc(\"a\"(#loc" + former + "))\n";
    many += "#loc" + name + " = loc(\"a\"(#loc))\nop loc(#loc" + former + ")\n";
  }
  for (int i = 1; i <= 40; ++i)
    doubling +=
        "#a" + std::to_string(i) + " = [#a" + std::to_string(i - 1) + ", #a" + std::to_string(i - 1) + "]\n";
  EXPECT_NE(errorOf(doubling).find("takes more than 16 MiB of text"), std::string::npos) << errorOf(doubling);
  EXPECT_NE(errorOf(chain).find("is nested more than 256 deep"), std::string::npos) << errorOf(chain);
  EXPECT_EQ(errorOf(many), "");
  EXPECT_EQ(errorOf("#a = [#b]\n#b = [#a]\n"), ""); // for the parser to say
}

/// The parser would make room for three thousand million results, 48 GB.
TEST(ModuleText, ResultsHaveSmallNumbers) {
  EXPECT_EQ(errorOf("return %x#999999 : f32"), "");
  EXPECT_EQ(errorOf("return %x#0 loc(#loc12345678)\n// %x#3000000000\n\"%x#3000000000\""), "");
  for (const char *number : {"#1000000", "#3000000000", " #99999999999999999999"})
    EXPECT_NE(errorOf("\n  return %x" + std::string(number)).find("m.mlir:2:1"), std::string::npos) << number;
  EXPECT_NE(errorOf("return %x#3000000000").find("a result's number has more than 6 digits"),
            std::string::npos);
  Compiler compiler;
  const auto module = compiler.parse("func.func @f(%x: f32) -> f32 { return %x#3000000000 : f32 }", "m.mlir");
  ASSERT_FALSE(module.ok());
  EXPECT_NE(module.message().find("no op has as many results"), std::string::npos) << module.message();
}

TEST(ModuleText, EveryModuleOfTheTestsPasses) {
  int files = 0;
  for (const auto &entry : std::filesystem::recursive_directory_iterator(GPUC_TEST_SOURCE))
    if (entry.path().extension() == ".mlir") {
      ++files;
      EXPECT_EQ(errorOf(*readFile(entry.path().string())), "") << entry.path();
    }
  EXPECT_GT(files, 50);
}

/// Of thousands of each kind of bracket the compiler says one line.
TEST(ModuleText, TheCompilerAsks) {
  for (const std::string &text :
       {repeated("module {\n", 20'000), "func.func @f() attributes {a = " + repeated("[", 20'000),
        "func.func @f(%x: " + repeated("tuple<", 20'000),
        "func.func @f() loc(" + repeated("callsite(", 20'000)}) {
    Compiler compiler;
    auto module = compiler.parse(text, "m.mlir");
    ASSERT_FALSE(module.ok());
    EXPECT_NE(module.message().find("nested in 256 others"), std::string::npos) << module.message();
  }
}

} // namespace
} // namespace gpuc
