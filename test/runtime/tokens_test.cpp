// Text and token files: which samples they make, and what they refuse.
#include <gtest/gtest.h>

#include "runtime/base/warn.h"
#include "runtime/data/data_spec.h"
#include "runtime/data/formats.h"
#include "test/runtime/temporary_folder.h"

namespace gpuc {
namespace {

/// Inputs of a language model: two rows of three tokens.
std::vector<InputSpec> inputsOf(DataType type, int64_t vocabulary) {
  return {{{"x", type, {2, 3}}, vocabulary}, {{"labels", type, {2, 3}}, vocabulary}};
}

template <typename T>
std::vector<T> rowsOf(const Dataset& dataset, size_t field, const std::vector<int64_t>& rows) {
  std::vector<T> values(rows.size() * static_cast<size_t>(dataset.fields()[field].sample.elementCount()));
  EXPECT_TRUE(dataset.copyRows(rows, field, reinterpret_cast<std::byte*>(values.data())).ok());
  return values;
}

TEST(Tokens, LabelsAreTheTokensThatFollow) {
  TemporaryFolder folder;
  std::string path =
      folder.write("a.txt", "abcdefgh");  // samples abc, def: the third has no label for its end
  auto dataset = openTokens(path, TokenFormat::bytes, inputsOf(DataType::i32, 0));
  ASSERT_TRUE(dataset.ok()) << dataset.message();
  EXPECT_EQ((*dataset)->size(), 2);
  EXPECT_EQ(rowsOf<int32_t>(**dataset, 0, {1, 0}), (std::vector<int32_t>{'d', 'e', 'f', 'a', 'b', 'c'}));
  EXPECT_EQ(rowsOf<int32_t>(**dataset, 1, {1, 0}), (std::vector<int32_t>{'e', 'f', 'g', 'b', 'c', 'd'}));
}

TEST(Tokens, TheLastTokenMayBeALabelOnly) {
  TemporaryFolder folder;
  auto dataset = openTokens(folder.write("a.txt", "abcdefg"), TokenFormat::bytes, inputsOf(DataType::i32, 0));
  ASSERT_TRUE(dataset.ok()) << dataset.message();
  EXPECT_EQ((*dataset)->size(), 2);
  EXPECT_EQ(rowsOf<int32_t>(**dataset, 1, {1}), (std::vector<int32_t>{'e', 'f', 'g'}));
  dataset = openTokens(folder.write("b.txt", "abcdef"), TokenFormat::bytes, inputsOf(DataType::i32, 0));
  ASSERT_TRUE(dataset.ok()) << dataset.message();
  EXPECT_EQ((*dataset)->size(), 1);  // def has no label for its end
}

TEST(Tokens, SixteenBitsAreLittleEndianAndUnsigned) {
  TemporaryFolder folder;
  std::string path = folder.write("a.bin", std::string("\x01\x00\x02\x01\xff\xff\x00\x80", 8));
  auto dataset = openTokens(path, TokenFormat::uint16, inputsOf(DataType::i64, 0));
  ASSERT_TRUE(dataset.ok()) << dataset.message();
  EXPECT_EQ(rowsOf<int64_t>(**dataset, 0, {0}), (std::vector<int64_t>{1, 258, 65535}));
  EXPECT_EQ(rowsOf<int64_t>(**dataset, 1, {0}), (std::vector<int64_t>{258, 65535, 32768}));
}

TEST(Tokens, BytesFromAbove127AreNotNegative) {
  TemporaryFolder folder;
  auto dataset =
      openTokens(folder.write("a.txt", "\xff\x80z\xc3"), TokenFormat::bytes, inputsOf(DataType::i32, 0));
  ASSERT_TRUE(dataset.ok()) << dataset.message();
  EXPECT_EQ(rowsOf<int32_t>(**dataset, 0, {0}), (std::vector<int32_t>{255, 128, 'z'}));
}

TEST(Tokens, ATokenBeyondTheVocabularyIsNamed) {
  TemporaryFolder folder;
  std::string path = folder.write("a.txt", std::string("\x01\x02\x03\x04\x05\x09\x01", 7));
  auto inputs = inputsOf(DataType::i32, 8);
  expectError(openDataset("text:" + path, inputs),
              "a.txt: sample 1 has x = 9, which lies outside the plan's range [0, 8)");
  inputs[0].range = 10;
  expectError(openDataset("text:" + path, inputs), "sample 1 has labels = 9");
  inputs[1].range = 10;
  EXPECT_TRUE(openDataset("text:" + path, inputs).ok());
}

TEST(Tokens, LabelsNeedNoInput) {
  TemporaryFolder folder;
  auto inputs = inputsOf(DataType::i32, 256);
  inputs.pop_back();
  EXPECT_TRUE(openDataset("text:" + folder.write("a.txt", "abcd"), inputs).ok());
}

TEST(Tokens, RefusesWhatMakesNoSample) {
  TemporaryFolder folder;
  auto inputs = inputsOf(DataType::i32, 0);
  expectError(openTokens(folder / "none", TokenFormat::bytes, inputs), "none");
  expectError(openTokens(folder.write("a", "abc"), TokenFormat::bytes, inputs),
              "3 tokens, but a sample takes 3 and the one that follows");
  expectError(openTokens(folder.write("empty", ""), TokenFormat::bytes, inputs), "0 tokens");
  expectError(openTokens(folder.write("odd", "abcdefghi"), TokenFormat::uint16, inputs),
              "odd: cut short: 9 bytes, but tokens of 16 bits come in pairs of bytes");
}

// They would train as well as text does.
TEST(Tokens, RefusesFilesOfAnotherKind) {
  TemporaryFolder folder;
  auto inputs = inputsOf(DataType::i32, 0);
  for (std::string begin : {"\x93NUMPY", "gpucplan", "\x89PNG\r\n\x1a\n", "\x1f\x8b\x08"}) {
    std::string path = folder.write("a", begin + std::string(64, '\0'));
    expectError(openTokens(path, TokenFormat::bytes, inputs), "a: not text; it is ");
    expectError(openTokens(path, TokenFormat::uint16, inputs), "a: not raw tokens; it is ");
  }
  // Text may be of anything.
  for (std::string begin : {"module @mlp {", "<!DOCTYPE html>", "\x08\x08\x12\x07", "PK"})
    EXPECT_TRUE(openTokens(folder.write("a", begin + std::string(64, ' ')), TokenFormat::bytes, inputs).ok());
}

/// What numpy.ndarray.tofile makes of 100 numbers of `size` bytes each.
std::string numbersOf(size_t size, int64_t first, int64_t step) {
  std::string bytes;
  for (int64_t i = 0; i < 100; ++i) {
    const int64_t number = first + step * i;
    bytes.append(reinterpret_cast<const char*>(&number), size);
  }
  return bytes;
}

TEST(Tokens, WarnsOfWiderOnes) {
  TemporaryFolder folder;
  auto warnings = [&](const std::string& bytes) {
    const KeptWarnings kept;
    auto dataset = openTokens(folder.write("a.bin", bytes), TokenFormat::uint16, inputsOf(DataType::i32, 0));
    EXPECT_TRUE(dataset.ok()) << dataset.message();
    return kept.lines();
  };
  const std::vector<std::string> wide = {
      folder / "a.bin" +
      ": every second token is 0 or small, as where a token has 32 or 64 bits, and 16 are read: save them by "
      "tokens.astype('<u2').tofile(FILE)"};
  EXPECT_EQ(warnings(numbersOf(4, 0, 1)), wide);
  EXPECT_EQ(warnings(numbersOf(8, 7, 500)), wide);
  EXPECT_EQ(warnings(numbersOf(4, 7, 1280)), wide);  // up to 127,000
  for (const std::string& plain : {numbersOf(2, 0, 1), numbersOf(2, 50000, 3), numbersOf(2, 5, 0),
                                   std::string(400, '\0'), std::string(400, '\0') + "\xff\xff",
                                   numbersOf(2, 3, 0) + "\xff\xff", numbersOf(4, 0, 1).substr(0, 100)})
    EXPECT_EQ(warnings(plain), std::vector<std::string>());
}

TEST(Tokens, RefusesAPlanThatTakesNoTokens) {
  TemporaryFolder folder;
  std::string path = folder.write("a", "abcdefghij");
  auto inputs = inputsOf(DataType::f32, 0);
  expectError(openTokens(path, TokenFormat::bytes, inputs), "input x is 2x3xf32, but tokens are i32 or i64");
  inputs = inputsOf(DataType::i32, 0);
  inputs[0].tensor.name = "pixels";
  expectError(openTokens(path, TokenFormat::bytes, inputs), "the plan has no input x");
  inputs = inputsOf(DataType::i32, 0);
  inputs[0].tensor.shape = {2};
  expectError(openTokens(path, TokenFormat::bytes, inputs), "tokens need batch and length");
}

}  // namespace
}  // namespace gpuc
