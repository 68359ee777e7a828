// safetensors in and out: bytes that repeat, and hostile headers.
#include "runtime/state/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "runtime/state/binding.h"
#include "test/runtime/temporary_folder.h"

namespace gpuc {
namespace {

std::string withLength(const std::string& header, const std::string& data = "") {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(header.size() >> (8 * i));
  return bytes + header + data;
}

void expectRefusal(const std::string& header, const std::string& data, const std::string& part) {
  expectError(SafetensorsFile::parse(withLength(header, data), "w"), part);
}

TEST(Safetensors, RoundTripsTensorsAndMetadata) {
  TemporaryFolder folder;
  std::vector<float> weight = {1, 2, 3, 4, 5, 6};
  std::vector<int64_t> step = {1000};
  std::vector<uint8_t> mask = {1, 0, 1};
  Metadata metadata = {{"format", "pt"}, {"a", "quote \" and \xc3\xa9"}};
  ASSERT_TRUE(writeSafetensors(folder / "w",
                               {{{"mask", DataType::i1, {3}}, mask.data()},
                                {{"fc1.weight", DataType::f32, {2, 3}}, weight.data()},
                                {{"empty", DataType::f32, {0, 3}}, nullptr},
                                {{"step", DataType::i64, {}}, step.data()}},
                               metadata)
                  .ok());
  Result<SafetensorsFile> file = SafetensorsFile::open(folder / "w");
  ASSERT_TRUE(file.ok()) << file.message();
  EXPECT_EQ(file->metadata(), metadata);
  ASSERT_EQ(file->tensors().size(), 4u);
  EXPECT_EQ(file->find("fc1.weight")->spec.str(), "2x3xf32");
  EXPECT_EQ(std::memcmp(file->find("fc1.weight")->data.data(), weight.data(), 24), 0);
  EXPECT_EQ(file->find("step")->spec.str(), "i64");
  EXPECT_EQ(file->find("mask")->data, std::string_view("\x01\x00\x01", 3));
  EXPECT_EQ(file->find("empty")->data, "");
  EXPECT_EQ(file->find("fc1.bias"), nullptr);
}

// The reference implementation (safetensors 0.8 of Python) writes the same bytes for the same tensors.
TEST(Safetensors, BytesAreTheReferences) {
  TemporaryFolder folder;
  std::vector<float> a = {1, 2};
  std::vector<uint8_t> b = {7};
  std::vector<double> c = {0.5};
  ASSERT_TRUE(writeSafetensors(folder / "w",
                               {{{"b", DataType::ui8, {1}}, b.data()},
                                {{"a", DataType::f32, {2}}, a.data()},
                                {{"c", DataType::f64, {}}, c.data()}},
                               {{"k", "v"}})
                  .ok());
  std::string header =
      R"({"__metadata__":{"k":"v"},"c":{"dtype":"F64","shape":[],"data_offsets":[0,8]},)"
      R"("a":{"dtype":"F32","shape":[2],"data_offsets":[8,16]},"b":{"dtype":"U8","shape":[1],"data_offsets":[16,17]}})";
  header.append((8 - header.size() % 8) % 8, ' ');
  std::string data(17, '\0');
  std::memcpy(data.data(), c.data(), 8);
  std::memcpy(data.data() + 8, a.data(), 8);
  data[16] = 7;
  EXPECT_EQ(fileBytes(folder / "w"), withLength(header, data));
}

// Each tensor is looked at a few times, however many there are: a header of 20 MB that is looked through
// again for each of its tensors would not be read within the suite's time.
TEST(Safetensors, ManyTensorsAreReadAndWritten) {
  constexpr size_t kTensors = 250'000;
  TemporaryFolder folder;
  std::vector<TensorView> tensors;
  std::vector<TensorSpec> specs;
  float value = 3;
  for (size_t i = 0; i < kTensors; ++i) specs.push_back({"t" + std::to_string(i), DataType::f32, {1}});
  for (const TensorSpec& spec : specs) tensors.push_back({spec, &value});
  ASSERT_TRUE(writeSafetensors(folder / "w", tensors, {}).ok());
  Result<SafetensorsFile> file = SafetensorsFile::open(folder / "w");
  ASSERT_TRUE(file.ok()) << file.message();
  EXPECT_EQ(file->tensors().size(), kTensors);
  Result<std::vector<const SafetensorsFile::Entry*>> bound = bindByName(specs, *file);
  ASSERT_TRUE(bound.ok()) << bound.message();
  EXPECT_EQ(bound->back()->spec.name, specs.back().name);
}

// A magic number may be a header's length: 1f 8b 08 00 is 559,903.
TEST(Safetensors, ALengthThatLooksLikeGzipIsALength) {
  std::string header = "{\"__metadata__\":{\"k\":\"" + std::string(559'903 - 25, 'x') + "\"}}";
  ASSERT_EQ(header.size(), 559'903u);
  Result<SafetensorsFile> file = SafetensorsFile::parse(withLength(header), "w");
  EXPECT_TRUE(file.ok()) << file.message();
}

TEST(Safetensors, SaysWhatElseAFileIs) {
  using namespace std::literals;
  for (auto [bytes, part] :
       {std::pair("\x93NUMPY\1\0v\0{'descr': "sv, "it is a NumPy array (.npy): save a dict"),
        {"gpucplan\3\0\0\0\0\0\0\0"sv, "it is a plan of gpuc: gpuc-train, "},
        {"\x1f\x8b\x08\0\0\0\0\0\0\3x"sv, "it is packed by gzip: unpack it first"},
        {"\x80\2\x8a\nl\xfc\x9c\x46\xf9"sv, "it is a pickle of Python"},
        {"\x08\x08\x12\x07pytorch"sv, "it is likely an ONNX model: gpuc-import-onnx"},
        {"<!DOCTYPE html><html>"sv, "it is a web page: was a download refused?"}})
    expectError(SafetensorsFile::parse(bytes, "w"), "w: not a safetensors file; "s + part);
}

TEST(Safetensors, EveryTypeGoesThrough) {
  TemporaryFolder folder;
  std::string data(16, '\1');
  for (int i = 0; i < kDataTypeCount; ++i) {
    TensorSpec spec{"t", static_cast<DataType>(i), {2}};
    ASSERT_TRUE(writeSafetensors(folder / "w", {{spec, data.data()}}, {}).ok());
    Result<SafetensorsFile> file = SafetensorsFile::open(folder / "w");
    ASSERT_TRUE(file.ok()) << file.message();
    EXPECT_EQ(file->tensors()[0].spec.str(), spec.str());
  }
}

TEST(Safetensors, WriterRefusesNamesThatCannotBe) {
  TemporaryFolder folder;
  float value = 1;
  auto write = [&](const std::string& one, const std::string& two, const Metadata& metadata = {}) {
    return writeSafetensors(
        folder / "w", {{{one, DataType::f32, {}}, &value}, {{two, DataType::f32, {}}, &value}}, metadata);
  };
  expectError(write("a", "a"), "w: a tensor cannot be named 'a', the name is taken");
  expectError(write("a", "__metadata__"), "cannot be named '__metadata__'");
  expectError(write("a", "\xff"), "cannot be named '\\xff'");
  expectError(write("a", "b", {{"k", "\xff"}}), "metadata 'k' is not UTF-8");
  EXPECT_FALSE(std::filesystem::exists(folder / "w"));
}

TEST(Safetensors, RefusesWhatIsNotInFull) {
  expectError(SafetensorsFile::parse("1234567", "w"), "w: cut short: 7 bytes");
  expectError(SafetensorsFile::parse(std::string("\x09\0\0\0\0\0\0\0{}", 10), "w"),
              "w: cut short: a header of 9 bytes, but only 2 follow");
  expectError(SafetensorsFile::parse(std::string(8, '\xff') + "{}", "w"),
              "w: not a safetensors file: its header would have 18446744073709551615 bytes");
  expectError(SafetensorsFile::parse(std::string(8, '\0'), "w"), "its header does not begin with {");
  expectRefusal("[]", "", "not a safetensors file: its header does not begin with {");
  const std::string header = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  EXPECT_TRUE(SafetensorsFile::parse(withLength(header, "12345678"), "w").ok());
  expectRefusal(header, "1234567", "cut short: its header tells of 8 bytes of tensors, but 7 follow");
  expectRefusal(header, "123456789", "too long: its header tells of 8 bytes of tensors, but 9 follow");
  TemporaryFolder folder;
  expectError(SafetensorsFile::open(folder / "absent"), "absent: No such file or directory");
}

TEST(Safetensors, EveryPrefixIsRefused) {
  std::string whole = withLength(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", "12345678");
  for (size_t length = 0; length < whole.size(); ++length)
    EXPECT_FALSE(SafetensorsFile::parse(whole.substr(0, length), "w").ok()) << length;
}

TEST(Safetensors, RefusesHeadersThatAreNotJson) {
  expectRefusal("{", "", "the header is not a JSON object");
  expectRefusal("{}x", "", "the header is not a JSON object");
  expectRefusal("{\"\xff\":1}", "", "the header is not a JSON object");
  expectRefusal("{\"a\":" + std::string(100000, '['), "", "the header is not a JSON object");
  expectRefusal(R"({"__metadata__":{},"__metadata__":{}})", "", "'__metadata__' stands twice");
  expectRefusal(R"({"a":{"dtype":"U8","dtype":"U8","shape":[0],"data_offsets":[0,0]}})", "",
                "'dtype' stands twice");
  expectRefusal(R"({"a":1,"a":2})", "", "'a' stands twice");
}

TEST(Safetensors, RefusesBadEntries) {
  expectRefusal(R"({"__metadata__":[]})", "", "__metadata__ is not an object");
  expectRefusal(R"({"__metadata__":{"k":1}})", "", "__metadata__: 'k' is not a string");
  expectRefusal(R"({"a":1})", "", "tensor 'a': is not an object");
  expectRefusal(R"({"a":{}})", "", "tensor 'a': must have dtype, shape and data_offsets");
  expectRefusal(R"({"a":{"dtype":"F32","shape":[],"stride":[]}})", "",
                "tensor 'a': has the unknown key 'stride'");
  auto entry = [](const std::string& dtype, const std::string& shape, const std::string& offsets) {
    return R"({"a":{"dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
  };
  expectRefusal(entry("\"F8_E4M3\"", "[1]", "[0,1]"), "x",
                "tensor 'a': has the dtype 'F8_E4M3', known are F64");
  expectRefusal(entry("7", "[1]", "[0,1]"), "x", "tensor 'a': has the dtype ?");
  expectRefusal(entry("\"U8\"", "1", "[0,1]"), "x", "tensor 'a': its shape is not a list");
  for (const char* shape : {"[-1]", "[1.0]", "[\"1\"]", "[9223372036854775808]", "[99999999999999999999]"})
    expectRefusal(entry("\"U8\"", shape, "[0,1]"), "x", "tensor 'a': its shape has an extent that is not");
  expectRefusal(entry("\"U8\"", "[4294967296,4294967296]", "[0,0]"), "", "more elements than 64 bits count");
  expectRefusal(entry("\"F64\"", "[2305843009213693952]", "[0,0]"), "", "more elements than 64 bits count");
  for (const char* offsets : {"[0]", "0", "[0,1,2]", "[-1,0]", "[0,1.5]"})
    expectRefusal(entry("\"U8\"", "[1]", offsets), "x", "tensor 'a': its data_offsets are not two integers");
  expectRefusal(entry("\"F32\"", "[2]", "[0,7]"), "1234567", "[0, 7] are not 8 bytes apart, as 2xf32 takes");
  expectRefusal(entry("\"U8\"", "[1]", "[1,0]"), "x", "[1, 0] are not 1 bytes apart");
}

TEST(Safetensors, RefusesGapsAndOverlaps) {
  auto two = [](int begin) {
    return R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[)" +
           std::to_string(begin) + "," + std::to_string(begin + 4) + "]}}";
  };
  EXPECT_TRUE(SafetensorsFile::parse(withLength(two(4), "12345678"), "w").ok());
  expectRefusal(two(5), "123456789", "tensor 'b' begins at byte 5 of the data, expected 4: a gap");
  expectRefusal(two(3), "1234567", "tensor 'b' begins at byte 3 of the data, expected 4: an overlap");
  expectRefusal(two(0), "1234", "an overlap");
  expectRefusal(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})", "xy", "expected 0: a gap");
}

SafetensorsFile fileWith(const TemporaryFolder& folder, const std::vector<TensorSpec>& specs) {
  std::string data(1000, '\0');
  std::vector<TensorView> views;
  for (const TensorSpec& spec : specs) views.push_back({spec, data.data()});
  EXPECT_TRUE(writeSafetensors(folder / "w", views, {}).ok());
  return *SafetensorsFile::open(folder / "w");
}

TEST(BindByName, FindsEachVariable) {
  TemporaryFolder folder;
  SafetensorsFile file = fileWith(folder, {{"a", DataType::f32, {2}}, {"b", DataType::f64, {}}});
  std::vector<TensorSpec> variables = {{"b", DataType::f64, {}}, {"a", DataType::f32, {2}}};
  auto entries = bindByName(variables, file);
  ASSERT_TRUE(entries.ok()) << entries.message();
  EXPECT_EQ((*entries)[0]->spec.name, "b");
  EXPECT_EQ((*entries)[1]->spec.name, "a");
}

TEST(BindByName, ListsEverythingAtOnce) {
  TemporaryFolder folder;
  SafetensorsFile file =
      fileWith(folder, {{"a", DataType::f32, {2, 3}}, {"b", DataType::f64, {}}, {"old", DataType::i64, {1}}});
  std::vector<TensorSpec> variables = {
      {"a", DataType::f32, {3, 2}}, {"b", DataType::f32, {}}, {"new", DataType::f32, {4}}};
  expectError(bindByName(variables, file),
              (folder / "w") +
                  " does not fit the plan's variables: missing new (4xf32); of another shape or type a "
                  "(2x3xf32, the plan has 3x2xf32), b (f64, the plan has f32); unknown to the plan old "
                  "(1xi64)");
}

TEST(BindByName, NamesFiveOfMany) {
  TemporaryFolder folder;
  SafetensorsFile file = fileWith(folder, {});
  std::vector<TensorSpec> variables;
  for (int i = 0; i < 8; ++i) variables.push_back({"v" + std::to_string(i), DataType::f32, {}});
  expectError(bindByName(variables, file),
              "missing v0 (f32), v1 (f32), v2 (f32), v3 (f32), v4 (f32) and 3 more");
  variables.resize(5);
  Status status = bindByName(variables, file).status();
  EXPECT_EQ(status.message().find("more"), std::string::npos) << status.message();
}

}  // namespace
}  // namespace gpuc
