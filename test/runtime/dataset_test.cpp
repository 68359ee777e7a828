// Data sets: what they serve, what they refuse, and in what words.
#include "runtime/data/dataset.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cmath>
#include <cstring>
#include <numeric>

#include "runtime/data/binding.h"
#include "runtime/data/data_spec.h"
#include "runtime/data/formats.h"
#include "runtime/data/gzip.h"
#include "runtime/state/npy.h"
#include "test/runtime/temporary_folder.h"

namespace gpuc {
namespace {

std::string bigEndian(uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8),
          static_cast<char>(value)};
}

/// An IDX file of unsigned bytes 0, 1, 2, … .
std::string idxBytes(const std::vector<uint32_t>& shape) {
  std::string bytes = {0, 0, 8, static_cast<char>(shape.size())};
  size_t count = 1;
  for (uint32_t extent : shape) {
    bytes += bigEndian(extent);
    count *= extent;
  }
  for (size_t i = 0; i < count; ++i) bytes += static_cast<char>(i);
  return bytes;
}

std::string gzipped(const std::string& bytes) {
  z_stream stream = {};
  deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&stream, bytes.size()) + 32, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

template <typename T>
std::vector<T> rowsOf(const Dataset& dataset, size_t field, const std::vector<int64_t>& rows) {
  size_t bytes = rows.size() * static_cast<size_t>(dataset.fields()[field].sample.sizeBytes());
  std::vector<T> values(bytes / sizeof(T));
  EXPECT_TRUE(dataset.copyRows(rows, field, reinterpret_cast<std::byte*>(values.data())).ok());
  return values;
}

constexpr size_t kAll = SIZE_MAX;

TEST(Gzip, UnpacksMembersInARow) {
  std::string text(100000, 'a');
  EXPECT_EQ(*gunzip(gzipped(text), "f", kAll), text);
  EXPECT_EQ(*gunzip(gzipped("one") + gzipped("two"), "f", kAll), "onetwo");
  EXPECT_EQ(*gunzip(gzipped(""), "f", kAll), "");
}

TEST(Gzip, UnpacksNoMoreThanIsAsked) {
  std::string packed = gzipped(std::string(100000, 'a'));
  for (size_t most : {0, 1, 4096, 4097, 99999, 100000, 100001}) {
    Result<std::string> text = gunzip(packed, "f", most);
    ASSERT_TRUE(text.ok()) << text.message();
    EXPECT_EQ(text->size(), std::min<size_t>(most, 100000));
    EXPECT_LE(text->capacity(), std::max<size_t>(2 * most, 15)) << "nor is there room for much more";
  }
  packed.resize(packed.size() - 12);  // what is not asked for may be damaged
  EXPECT_EQ(gunzip(packed, "f", 5)->size(), 5u);
}

TEST(Gzip, RefusesDamage) {
  std::string packed = gzipped("some text that is long enough to be cut");
  for (size_t length = 2; length < packed.size(); ++length)
    expectError(gunzip(packed.substr(0, length), "f.gz", kAll),
                "f.gz: gzip data cut short after " + std::to_string(length));
  expectError(gunzip(packed + "xyz", "f.gz", kAll), "f.gz: 3 bytes follow the end of the gzip data");
  std::string flipped = packed;
  flipped[packed.size() - 6] ^= 1;  // within the CRC
  expectError(gunzip(flipped, "f.gz", kAll), "f.gz: corrupt gzip data: incorrect data check");
}

class Idx : public testing::Test {
 protected:
  void write(const std::string& images, const std::string& labels, const std::string& suffix = "") {
    folder.write("train-images-idx3-ubyte" + suffix, images);
    folder.write("train-labels-idx1-ubyte" + suffix, labels);
  }
  Result<std::unique_ptr<Dataset>> open() { return openIdx(folder / "train"); }
  TemporaryFolder folder;
};

TEST_F(Idx, ServesImagesAndLabelsInAnyOrder) {
  for (bool packed : {false, true}) {
    TemporaryFolder own;
    auto pack = [&](const std::string& bytes) { return packed ? gzipped(bytes) : bytes; };
    std::string suffix = packed ? ".gz" : "";
    own.write("t-images-idx3-ubyte" + suffix, pack(idxBytes({4, 2, 3})));
    own.write("t-labels-idx1-ubyte" + suffix, pack(idxBytes({4})));
    Result<std::unique_ptr<Dataset>> dataset = openIdx(own / "t");
    ASSERT_TRUE(dataset.ok()) << dataset.message();
    EXPECT_EQ((*dataset)->size(), 4);
    EXPECT_EQ((*dataset)->fields()[0].sample.str(), "2x3xui8");
    EXPECT_EQ((*dataset)->fields()[1].sample.str(), "i32");
    EXPECT_EQ(rowsOf<uint8_t>(**dataset, 0, {2, 0}),
              (std::vector<uint8_t>{12, 13, 14, 15, 16, 17, 0, 1, 2, 3, 4, 5}));
    EXPECT_EQ(rowsOf<int32_t>(**dataset, 1, {3, 3, 1}), (std::vector<int32_t>{3, 3, 1}));
  }
}

TEST_F(Idx, RefusesMissingFiles) {
  expectError(open(), "neither " + (folder / "train-images-idx3-ubyte") + " nor ");
  folder.write("train-images-idx3-ubyte", idxBytes({1, 1, 1}));
  expectError(open(), "neither " + (folder / "train-labels-idx1-ubyte") + " nor ");
}

TEST_F(Idx, RefusesOtherFormats) {
  write("PK\x03\x04 zip", idxBytes({1}));
  expectError(open(), "train-images-idx3-ubyte: not an IDX file: it begins with 50 4b, expected 00 00");
  write(std::string("\0\0\x0d\x03", 4), idxBytes({1}));
  expectError(open(), "IDX element type 0x0d (32-bit float), expected 0x08 (unsigned byte)");
  write(idxBytes({4}), idxBytes({4}));
  expectError(open(), "train-images-idx3-ubyte: IDX of rank 1, expected 3");
  write("", idxBytes({4}));
  expectError(open(), "cut short: 0 bytes, an IDX header has at least 4");
  write(idxBytes({4, 2, 3}).substr(0, 15), idxBytes({4}));
  expectError(open(), "cut short: 15 bytes, an IDX header of rank 3 has 16");
}

TEST_F(Idx, RefusesLengthsThatDisagree) {
  write(idxBytes({4, 2, 3}).substr(0, 39), idxBytes({4}));
  expectError(open(),
              "train-images-idx3-ubyte: cut short: 39 bytes, but its header says 4x2x3xui8, which makes 40");
  write(idxBytes({4, 2, 3}) + "x", idxBytes({4}));
  expectError(open(), "too long: its header says 4x2x3xui8, which makes 40 bytes, but more follow");
  write(idxBytes({4, 2, 3}), idxBytes({3}));
  expectError(open(), "has 4 images, but " + (folder / "train-labels-idx1-ubyte") + " has 3 labels");
  write(idxBytes({0, 2, 3}), idxBytes({0}));
  expectError(open(), "has no images");
  write(std::string("\0\0\x08\x03", 4) + bigEndian(~0u) + bigEndian(~0u) + bigEndian(~0u), idxBytes({1}));
  expectError(open(), "extents 4294967295x4294967295x4294967295xui8 of its header are too large");
}

TEST(NpyDataset, ServesItsFiles) {
  TemporaryFolder folder;
  std::vector<float> x = {1, 2, 3, 4, 5, 6};
  std::vector<int64_t> y = {7, 8, 9};
  ASSERT_TRUE(writeNpy(folder / "x.npy", {"x", DataType::f32, {3, 2}}, x.data()).ok());
  ASSERT_TRUE(writeNpy(folder / "y.npy", {"y", DataType::i64, {3}}, y.data()).ok());
  Result<std::unique_ptr<Dataset>> dataset =
      openNpyDataset({{"x", folder / "x.npy"}, {"y", folder / "y.npy"}});
  ASSERT_TRUE(dataset.ok()) << dataset.message();
  EXPECT_EQ((*dataset)->size(), 3);
  EXPECT_EQ(rowsOf<float>(**dataset, 0, {2, 1}), (std::vector<float>{5, 6, 3, 4}));
  EXPECT_EQ(rowsOf<int64_t>(**dataset, 1, {0, 2}), (std::vector<int64_t>{7, 9}));
}

// Labels of NumPy and PyTorch are i64, those of the model perhaps not.
TEST(NpyDataset, ServesIntegersInTheWidthThatTheInputTakes) {
  TemporaryFolder folder;
  std::vector<int64_t> wide = {7, -100, 9};
  std::vector<uint8_t> narrow = {3, 255, 0};
  ASSERT_TRUE(writeNpy(folder / "wide.npy", {"", DataType::i64, {3}}, wide.data()).ok());
  ASSERT_TRUE(writeNpy(folder / "narrow.npy", {"", DataType::ui8, {3}}, narrow.data()).ok());
  std::vector<InputSpec> inputs = {{{"a", DataType::i32, {8}}}, {{"b", DataType::i64, {8}}}};
  Result<std::unique_ptr<Dataset>> dataset =
      openNpyDataset({{"a", folder / "wide.npy"}, {"b", folder / "narrow.npy"}}, inputs);
  ASSERT_TRUE(dataset.ok()) << dataset.message();
  EXPECT_TRUE(bindFields(**dataset, inputs).ok());
  EXPECT_EQ(rowsOf<int32_t>(**dataset, 0, {2, 1}), (std::vector<int32_t>{9, -100}));
  EXPECT_EQ(rowsOf<int64_t>(**dataset, 1, {1, 0}), (std::vector<int64_t>{255, 3}));
}

TEST(NpyDataset, RefusesAnIntegerThatDoesNotFit) {
  TemporaryFolder folder;
  std::vector<int64_t> wide = {1, 2, 3, 4, int64_t{1} << 32, 6};
  ASSERT_TRUE(writeNpy(folder / "wide.npy", {"", DataType::i64, {3, 2}}, wide.data()).ok());
  for (DataType type : {DataType::i32, DataType::i8, DataType::ui8}) {
    std::vector<InputSpec> inputs = {{{"t", type, {8, 2}}}};
    expectError(openNpyDataset({{"t", folder / "wide.npy"}}, inputs),
                std::string("sample 2 has t = 4294967296, which does not fit into ") + nameOf(type));
  }
  wide[4] = -1;
  ASSERT_TRUE(writeNpy(folder / "wide.npy", {"", DataType::i64, {3, 2}}, wide.data()).ok());
  std::vector<InputSpec> inputs = {{{"t", DataType::ui8, {8, 2}}}};
  expectError(openNpyDataset({{"t", folder / "wide.npy"}}, inputs),
              "sample 2 has t = -1, which does not fit");
  // No integers: served as they are, for bindFields to refuse with a cure.
  inputs[0].tensor.type = DataType::f32;
  expectError(bindFields(**openNpyDataset({{"t", folder / "wide.npy"}}, inputs), inputs),
              "t is i64, but the plan's input wants f32; save a.astype('<f4')");
}

TEST(NpyDataset, RefusesFilesThatDisagree) {
  TemporaryFolder folder;
  std::vector<float> data(8);
  std::string four = folder / "four.npy", two = folder / "two.npy", one = folder / "scalar.npy",
              none = folder / "none.npy";
  ASSERT_TRUE(writeNpy(four, {"", DataType::f32, {4, 2}}, data.data()).ok());
  ASSERT_TRUE(writeNpy(two, {"", DataType::f32, {2, 4}}, data.data()).ok());
  ASSERT_TRUE(writeNpy(one, {"", DataType::f32, {}}, data.data()).ok());
  ASSERT_TRUE(writeNpy(none, {"", DataType::f32, {0, 4}}, data.data()).ok());
  expectError(openNpyDataset({{"x", four}, {"y", two}}), four + " has 4 samples, but " + two + " has 2");
  expectError(openNpyDataset({{"x", four}, {"x", two}}),
              "field x is given twice, by " + four + " and " + two);
  expectError(openNpyDataset({{"x", one}}), one + ": holds a single value");
  expectError(openNpyDataset({{"x", none}}), none + ": has no samples");
  expectError(openNpyDataset({{"x", folder / "absent.npy"}}), "absent.npy: No such file");
}

std::vector<InputSpec> mnistInputs() {
  return {{{"x", DataType::ui8, {64, 1, 2, 3}}, 0}, {{"labels", DataType::i32, {64}}, 10}};
}

TEST_F(Idx, BindsByNameTypeAndElementCount) {
  write(idxBytes({4, 2, 3}), idxBytes({4}));
  std::unique_ptr<Dataset> dataset = *open();
  std::vector<InputSpec> inputs = mnistInputs();
  EXPECT_EQ(*bindFields(*dataset, inputs), (std::vector<size_t>{0, 1}));
  std::swap(inputs[0], inputs[1]);
  EXPECT_EQ(*bindFields(*dataset, inputs), (std::vector<size_t>{1, 0}));
  inputs.erase(inputs.begin());  // a plan without labels
  EXPECT_EQ(*bindFields(*dataset, inputs), (std::vector<size_t>{0}));
}

TEST_F(Idx, BindingNamesWhatDoesNotFit) {
  write(idxBytes({4, 2, 3}), idxBytes({4}));
  std::unique_ptr<Dataset> dataset = *open();
  std::vector<InputSpec> inputs = mnistInputs();
  inputs[0].tensor.name = "image";
  expectError(bindFields(*dataset, inputs),
              "no field for the plan's input image: 64x1x2x3xui8 (fields: x, labels)");
  inputs = mnistInputs();
  inputs[0].tensor.type = DataType::f32;
  expectError(bindFields(*dataset, inputs),
              "train-images-idx3-ubyte: x is ui8, but the plan's input wants f32");
  inputs = mnistInputs();
  inputs[0].tensor.shape = {64, 1, 28, 28};
  expectError(bindFields(*dataset, inputs),
              "a sample of x is 2x3xui8 (6 elements), but the plan's input wants 1x28x28xui8 (784 elements)");
  inputs[0].tensor.shape = {};
  expectError(bindFields(*dataset, inputs), "input x: ui8 has no batch extent");
  inputs = mnistInputs();
  inputs.erase(inputs.begin());
  expectError(bindFields(*dataset, inputs),
              "train-images-idx3-ubyte: the plan has no input x (inputs: labels)");
}

/// Binds samples of one shape to an input of the other.
Status bindShapes(std::vector<int64_t> data, std::vector<int64_t> input) {
  TemporaryFolder folder;
  data.insert(data.begin(), 2);
  input.insert(input.begin(), 4);
  std::vector<float> values(1000);
  EXPECT_TRUE(writeNpy(folder / "x.npy", {"", DataType::f32, data}, values.data()).ok());
  std::vector<InputSpec> inputs = {{{"x", DataType::f32, input}}};
  return bindFields(**openNpyDataset({{"x", folder / "x.npy"}}, inputs), inputs).status();
}

TEST(NpyDataset, ShapesMayDifferWhereTheOrderIsTheSame) {
  using Shape = std::vector<int64_t>;
  for (const auto& [data, input] : std::vector<std::pair<Shape, Shape>>{{{5, 6}, {30}},
                                                                        {{30}, {1, 5, 6}},
                                                                        {{5, 6}, {1, 5, 6}},
                                                                        {{5, 6, 1}, {1, 5, 6}},
                                                                        {{2, 3, 4}, {6, 4}},
                                                                        {{2, 12}, {2, 3, 4}},
                                                                        {{1}, {}},
                                                                        {{}, {1, 1}},
                                                                        {{2, 1, 3, 4}, {2, 3, 1, 4}},
                                                                        {{1, 6}, {6}}}) {
    EXPECT_TRUE(bindShapes(data, input).ok()) << data.size() << " and " << input.size();
    EXPECT_TRUE(bindShapes(input, data).ok()) << data.size() << " and " << input.size();
  }
}

TEST(NpyDataset, RefusesShapesOfAnotherOrder) {
  expectError(
      bindShapes({5, 6, 3}, {3, 5, 6}),
      "x.npy: a sample of x is 5x6x3xf32, but the plan's input wants 3x5x6xf32, whose elements stand in "
      "another order: transpose the data, or give them that shape");
  expectError(bindShapes({4, 6}, {6, 4}), "in another order");
  expectError(bindShapes({4, 6}, {1, 6, 4}), "in another order");
  expectError(bindShapes({2, 3, 4}, {2, 4, 3}), "in another order");
  expectError(bindShapes({4, 6}, {8, 3}), "in another order");
}

TEST_F(Idx, ALabelOutOfRangeIsNamed) {
  std::string labels = idxBytes({4});
  labels[8 + 2] = 11;
  write(idxBytes({4, 2, 3}), labels);
  expectError(openDataset("idx:" + (folder / "train"), mnistInputs()),
              (folder / "train-labels-idx1-ubyte") +
                  ": sample 2 has labels = 11, which lies outside the plan's range [0, 10)");
  labels[8 + 2] = 9;
  write(idxBytes({4, 2, 3}), labels);
  EXPECT_TRUE(openDataset("idx:" + (folder / "train"), mnistInputs()).ok());
}

TEST_F(Idx, LabelsAreI64WhereTheInputTakesThat) {
  write(idxBytes({4, 2, 3}), idxBytes({4}));
  std::vector<InputSpec> inputs = mnistInputs();
  inputs[1].tensor.type = DataType::i64;
  Result<BoundDataset> data = openDataset("idx:" + (folder / "train"), inputs);
  ASSERT_TRUE(data.ok()) << data.message();
  EXPECT_EQ(rowsOf<int64_t>(*data->dataset, 1, {3, 1}), (std::vector<int64_t>{3, 1}));
}

TEST(CheckRange, TakesWhatIsIgnored) {
  TemporaryFolder folder;
  std::vector<int64_t> labels = {0, -100, 4, -1};
  ASSERT_TRUE(writeNpy(folder / "t.npy", {"", DataType::i64, {4}}, labels.data()).ok());
  std::unique_ptr<Dataset> dataset = *openNpyDataset({{"t", folder / "t.npy"}});
  expectError(checkRange(*dataset, 0, 5),
              "sample 1 has t = -100, which lies outside the plan's range [0, 5): a");
  expectError(checkRange(*dataset, 0, 5, -100),
              "sample 3 has t = -1, which lies outside the plan's range [0, 5) and is not what the plan "
              "ignores, -100");
  labels[3] = 3;
  ASSERT_TRUE(writeNpy(folder / "t.npy", {"", DataType::i64, {4}}, labels.data()).ok());
  EXPECT_TRUE(checkRange(**openNpyDataset({{"t", folder / "t.npy"}}), 0, 5, -100).ok());
}

TEST(CheckRange, ReadsEveryTypeOfInteger) {
  TemporaryFolder folder;
  std::vector<int64_t> wide = {0, 1, -1, 5};
  ASSERT_TRUE(writeNpy(folder / "wide.npy", {"", DataType::i64, {2, 2}}, wide.data()).ok());
  expectError(checkRange(**openNpyDataset({{"t", folder / "wide.npy"}}), 0, 5), "sample 1 has t = -1, ");
  std::vector<int8_t> narrow = {0, 1, 2, -3};
  ASSERT_TRUE(writeNpy(folder / "narrow.npy", {"", DataType::i8, {4}}, narrow.data()).ok());
  expectError(checkRange(**openNpyDataset({{"t", folder / "narrow.npy"}}), 0, 5), "sample 3 has t = -3, ");
  std::vector<uint8_t> bytes(3 << 20, 1);
  bytes.back() = 200;  // in the third chunk
  ASSERT_TRUE(writeNpy(folder / "bytes.npy", {"", DataType::ui8, {3 << 20}}, bytes.data()).ok());
  expectError(checkRange(**openNpyDataset({{"t", folder / "bytes.npy"}}), 0, 200),
              "sample 3145727 has t = 200, ");
  EXPECT_TRUE(checkRange(**openNpyDataset({{"t", folder / "bytes.npy"}}), 0, 201).ok());
  std::vector<float> floats = {1};
  ASSERT_TRUE(writeNpy(folder / "f.npy", {"", DataType::f32, {1}}, floats.data()).ok());
  expectError(checkRange(**openNpyDataset({{"t", folder / "f.npy"}}), 0, 5),
              "t is f32, but values in [0, 5) are integers");
}

TEST(Synthetic, SamplesArePureFunctionsOfSeedAndIndex) {
  std::vector<InputSpec> inputs = {{{"x", DataType::f32, {8, 5, 7}}, 0}, {{"y", DataType::i64, {8}}, 3}};
  std::unique_ptr<Dataset> one = *makeSyntheticDataset(inputs, 100, 1),
                           two = *makeSyntheticDataset(inputs, 50, 1),
                           other = *makeSyntheticDataset(inputs, 100, 2);
  EXPECT_EQ(one->fields()[0].sample.str(), "5x7xf32");
  EXPECT_EQ(rowsOf<float>(*one, 0, {3, 7})[35], rowsOf<float>(*two, 0, {7})[0]);
  EXPECT_EQ(rowsOf<float>(*one, 0, {7}), rowsOf<float>(*two, 0, {7}));
  EXPECT_NE(rowsOf<float>(*one, 0, {7}), rowsOf<float>(*one, 0, {8}));
  EXPECT_NE(rowsOf<float>(*one, 0, {7}), rowsOf<float>(*other, 0, {7}));
}

TEST(Synthetic, FloatsHaveMeanZeroAndVarianceOne) {
  std::vector<InputSpec> inputs = {{{"x", DataType::f32, {1, 1000}}, 0}};
  std::unique_ptr<Dataset> dataset = *makeSyntheticDataset(inputs, 100, 0);
  std::vector<int64_t> rows(100);
  std::iota(rows.begin(), rows.end(), 0);
  double sum = 0, squares = 0;
  for (float value : rowsOf<float>(*dataset, 0, rows)) {
    sum += value;
    squares += double{value} * value;
  }
  EXPECT_NEAR(sum / 1e5, 0, 0.015);     // standard error 0.0032
  EXPECT_NEAR(squares / 1e5, 1, 0.02);  // standard error 0.0043
}

TEST(Synthetic, IntegersFillTheirRange) {
  std::vector<InputSpec> inputs = {{{"a", DataType::i32, {1, 1000}}, 10},
                                   {{"b", DataType::ui8, {1, 10000}}, 0},
                                   {{"c", DataType::i1, {1, 1000}}, 0}};
  std::unique_ptr<Dataset> dataset = *makeSyntheticDataset(inputs, 1, 0);
  std::vector<int> count(10);
  for (int32_t value : rowsOf<int32_t>(*dataset, 0, {0})) ++count.at(static_cast<size_t>(value));
  for (int times : count) EXPECT_NEAR(times, 100, 50);
  std::vector<uint8_t> bytes = rowsOf<uint8_t>(*dataset, 1, {0}),
                       booleans = rowsOf<uint8_t>(*dataset, 2, {0});
  EXPECT_EQ(*std::max_element(bytes.begin(), bytes.end()), 255);
  EXPECT_EQ(*std::max_element(booleans.begin(), booleans.end()), 1);
  EXPECT_EQ(*std::min_element(booleans.begin(), booleans.end()), 0);
}

TEST(Synthetic, PinnedValues) {
  // Philox at counter {0, 7, 0, "syn\0"}, key {1, 0}: see random_test for the generator itself.
  std::vector<InputSpec> inputs = {{{"y", DataType::i32, {1, 6}}, 1000}};
  EXPECT_EQ(rowsOf<int32_t>(**makeSyntheticDataset(inputs, 10, 1), 0, {7}),
            (std::vector<int32_t>{363, 207, 313, 773, 162, 219}));
}

TEST(Synthetic, RefusesWhatItCannotMake) {
  std::vector<InputSpec> inputs = {{{"y", DataType::i8, {8}}, 1000}};
  expectError(makeSyntheticDataset(inputs, 10, 0), "input y: a range of 1000 does not fit into i8");
  inputs[0].range = 0;
  expectError(makeSyntheticDataset(inputs, 0, 0), "size=0, expected at least 1");
  inputs[0].tensor.shape.clear();
  expectError(makeSyntheticDataset(inputs, 10, 0), "input y: i8 has no batch extent");
}

TEST(DataSpec, ReadsEachKind) {
  EXPECT_EQ(parseDataSpec("idx:/data/a:b,c=d")->path, "/data/a:b,c=d");
  EXPECT_EQ(parseDataSpec("text:a=b.txt")->path, "a=b.txt");
  EXPECT_EQ(parseDataSpec("tokens:a.bin")->kind, DataSpec::Kind::tokens);
  EXPECT_EQ(parseDataSpec("images:a")->kind, DataSpec::Kind::images);
  DataSpec npy = *parseDataSpec("npy:x=a.npy,y=b=c.npy");
  EXPECT_EQ(npy.files[0], (std::pair<std::string, std::string>{"x", "a.npy"}));
  EXPECT_EQ(npy.files[1], (std::pair<std::string, std::string>{"y", "b=c.npy"}));
  DataSpec synthetic = *parseDataSpec("synthetic:seed=3,size=100");
  EXPECT_EQ(synthetic.size, 100);
  EXPECT_EQ(synthetic.seed, 3u);
}

TEST(DataSpec, RefusalsNameTheNearest) {
  expectError(parseDataSpec("idz:x"), "data 'idz:x': unknown kind 'idz'; did you mean 'idx'?");
  expectError(parseDataSpec(""), "unknown kind ''");
  expectError(parseDataSpec("token:a.bin"), "did you mean 'tokens'?");
  expectError(parseDataSpec("idx"), "data 'idx': expected idx:PREFIX, as in idx:data/train");
  expectError(parseDataSpec("images:"), "expected images:FOLDER, as in images:data/train");
  expectError(parseDataSpec("text:"), "expected text:FILE");
  expectError(parseDataSpec("npy:"), "expected npy:NAME=FILE");
  expectError(parseDataSpec("npy:x"), "expected NAME=VALUE, found 'x'");
  expectError(parseDataSpec("npy:x=a,"), "expected NAME=VALUE, found ''");
  expectError(parseDataSpec("npy:=a"), "expected NAME=VALUE, found '=a'");
  expectError(parseDataSpec("synthetic"), "expected synthetic:size=N");
  expectError(parseDataSpec("synthetic:seed=1"), "expected size=N");
  expectError(parseDataSpec("synthetic:sice=1"), "unknown key 'sice'; did you mean 'size'?");
  expectError(parseDataSpec("synthetic:size=1,size=2"), "key 'size' is given twice");
  expectError(parseDataSpec("synthetic:size=0"), "size '0' must be at least 1");
  expectError(parseDataSpec("synthetic:size=1,seed=-1"), "seed '-1' must be at least 0");
  expectError(parseDataSpec("synthetic:size=many"), "size: expected an integer of 64 bits, found 'many'");
}

TEST(DataSpec, OpensAndBindsSyntheticData) {
  Result<BoundDataset> bound = openDataset("synthetic:size=20", mnistInputs());
  ASSERT_TRUE(bound.ok()) << bound.message();
  EXPECT_EQ(bound->dataset->size(), 20);
  EXPECT_EQ(bound->field_of_input, (std::vector<size_t>{0, 1}));
}

}  // namespace
}  // namespace gpuc
