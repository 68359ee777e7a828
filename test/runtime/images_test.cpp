// Folders of pictures: order, labels, colours, and what is refused.
#include <gtest/gtest.h>
#include <png.h>
#include <turbojpeg.h>

#include <filesystem>

#include "runtime/base/warn.h"
#include "runtime/data/data_spec.h"
#include "runtime/data/decode_image.h"
#include "runtime/data/formats.h"
#include "runtime/data/scratch_file.h"
#include "test/runtime/temporary_folder.h"

namespace gpuc {
namespace {

/// A PNG of `width` pixels a row; `format` is one of libpng's.
std::string pngBytes(uint32_t format, uint32_t width, const std::vector<uint8_t>& pixels) {
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  image.format = format;
  image.width = width;
  image.height = static_cast<uint32_t>(pixels.size()) / width / PNG_IMAGE_SAMPLE_CHANNELS(format);
  png_alloc_size_t size = 0;
  EXPECT_TRUE(png_image_write_to_memory(&image, nullptr, &size, 0, pixels.data(), 0, nullptr));
  std::string bytes(size, '\0');
  EXPECT_TRUE(png_image_write_to_memory(&image, bytes.data(), &size, 0, pixels.data(), 0, nullptr));
  bytes.resize(size);
  return bytes;
}

std::string greyPng(uint32_t width, const std::vector<uint8_t>& pixels) {
  return pngBytes(PNG_FORMAT_GRAY, width, pixels);
}

/// A PNG of 16 bits a pixel, with a chunk that says that they are linear in light.
std::string linearPng(const std::vector<uint16_t>& pixels) {
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  image.format = PNG_FORMAT_LINEAR_Y;
  image.width = static_cast<uint32_t>(pixels.size());
  image.height = 1;
  std::string bytes(1000, '\0');
  png_alloc_size_t size = bytes.size();
  EXPECT_TRUE(png_image_write_to_memory(&image, bytes.data(), &size, 0, pixels.data(), 0, nullptr));
  bytes.resize(size);
  EXPECT_NE(bytes.find("gAMA"), std::string::npos);
  return bytes;
}

/// A grey PNG, which holds a few pixels of all rows before it holds the others.
std::string interlacedPng(uint32_t width, std::vector<uint8_t> pixels) {
  std::string bytes;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  auto append = [](png_structp writer, png_bytep data, size_t size) {
    static_cast<std::string*>(png_get_io_ptr(writer))->append(reinterpret_cast<char*>(data), size);
  };
  png_set_write_fn(png, &bytes, append, nullptr);
  auto height = static_cast<uint32_t>(pixels.size()) / width;
  png_set_IHDR(png, info, width, height, 8, PNG_COLOR_TYPE_GRAY, PNG_INTERLACE_ADAM7, 0, 0);
  std::vector<png_bytep> rows;
  for (uint32_t row = 0; row < height; ++row) rows.push_back(pixels.data() + row * width);
  png_set_rows(png, info, rows.data());
  png_write_png(png, info, PNG_TRANSFORM_IDENTITY, nullptr);
  png_destroy_write_struct(&png, &info);
  return bytes;
}

/// A JPEG, `side` pixels each way, of one colour of turbojpeg's `format`.
std::string jpegBytes(int side, TJPF format, const std::vector<uint8_t>& colour) {
  std::vector<uint8_t> pixels;
  for (int i = 0; i < side * side; ++i) pixels.insert(pixels.end(), colour.begin(), colour.end());
  tjhandle encoder = tjInitCompress();
  unsigned char* data = nullptr;
  unsigned long size = 0;
  const int sampling = format == TJPF_GRAY ? TJSAMP_GRAY : TJSAMP_444;
  EXPECT_EQ(tjCompress2(encoder, pixels.data(), side, 0, side, format, &data, &size, sampling, 95, 0), 0);
  std::string bytes(reinterpret_cast<char*>(data), size);
  tjFree(data);
  tjDestroy(encoder);
  return bytes;
}

std::string greyJpeg(int side, uint8_t grey) { return jpegBytes(side, TJPF_GRAY, {grey}); }

std::vector<uint8_t> decoded(const std::string& bytes, const ImageShape& shape) {
  std::vector<uint8_t> values(static_cast<size_t>(shape.elementCount()));
  Status status = decodeImage(bytes, "f", shape, values.data());
  EXPECT_TRUE(status.ok()) << status.message();
  return values;
}

Status decodeError(const std::string& bytes, const ImageShape& shape) {
  std::vector<uint8_t> values(static_cast<size_t>(shape.elementCount()));
  return decodeImage(bytes, "f", shape, values.data());
}

TEST(DecodeImage, ChannelsBecomePlanes) {
  std::string rgb = pngBytes(PNG_FORMAT_RGB, 2, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(decoded(rgb, {3, 1, 2}), (std::vector<uint8_t>{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(decoded(greyPng(2, {7, 9}), {3, 1, 2}), (std::vector<uint8_t>{7, 9, 7, 9, 7, 9}));
}

TEST(DecodeImage, WhatIsTransparentLiesOverBlack) {
  std::string picture = pngBytes(PNG_FORMAT_GA, 2, {200, 255, 200, 0});
  EXPECT_EQ(decoded(picture, {1, 1, 2}), (std::vector<uint8_t>{200, 0}));
  // 200 * 128 / 255 is 100.4, 40 is 20.1, 90 is 45.2.
  std::string half = pngBytes(PNG_FORMAT_RGBA, 1, {200, 40, 90, 128});
  EXPECT_EQ(decoded(half, {3, 1, 1}), (std::vector<uint8_t>{100, 20, 45}));
}

TEST(DecodeImage, GreyOfColoursIsTheSameOfBothFormats) {
  // 0.299 * 200 + 0.587 * 40 + 0.114 * 90 = 93.5, and 0.299 * 10 + 0.587 * 240 + 0.114 * 30 = 147.3.
  EXPECT_EQ(decoded(pngBytes(PNG_FORMAT_RGB, 2, {200, 40, 90, 10, 240, 30}), {1, 1, 2}),
            (std::vector<uint8_t>{94, 147}));
  EXPECT_EQ(decoded(jpegBytes(8, TJPF_RGB, {10, 240, 30}), {1, 8, 8}), std::vector<uint8_t>(64, 147));
  for (int grey = 0; grey < 256; ++grey)
    EXPECT_EQ(decoded(greyPng(1, {static_cast<uint8_t>(grey)}), {1, 1, 1})[0], grey);
}

TEST(DecodeImage, NumbersAreTheFilesWhateverItSaysOfLight) {
  std::string picture = linearPng({0x4d11, 0xfffe, 0x00ff});
  EXPECT_EQ(decoded(picture, {1, 1, 3}), (std::vector<uint8_t>{0x4d, 0xff, 0x00}));
}

TEST(DecodeImage, ReadsInterlacedRows) {
  std::vector<uint8_t> pixels(63);
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(4 * i + 1);
  EXPECT_EQ(decoded(interlacedPng(7, pixels), {1, 9, 7}), pixels);
}

TEST(DecodeImage, RefusesColoursForPrint) {
  expectError(decodeError(jpegBytes(8, TJPF_CMYK, {10, 200, 30, 40}), {3, 8, 8}),
              "f: colours for print (CMYK): save the picture as RGB");
}

TEST(DecodeImage, ReadsJpeg) {
  EXPECT_EQ(decoded(greyJpeg(8, 100), {1, 8, 8}), std::vector<uint8_t>(64, 100));
  EXPECT_EQ(decoded(greyJpeg(8, 100), {3, 8, 8}), std::vector<uint8_t>(192, 100));
}

TEST(DecodeImage, RefusesOtherSizes) {
  expectError(decodeError(greyPng(2, {1, 2}), {1, 2, 1}),
              "f: 2x1 pixels, but the plan's input x wants 1x2 (width x height): resize the picture");
  expectError(decodeError(greyJpeg(8, 0), {1, 8, 9}), "f: 8x8 pixels, but the plan's input x wants 9x8");
}

TEST(DecodeImage, RefusesDamage) {
  std::string png = greyPng(2, {1, 2}), jpeg = greyJpeg(16, 77);
  for (size_t length = 0; length < png.size() - 12; ++length)  // the last chunk, IEND, says nothing
    EXPECT_FALSE(decodeError(png.substr(0, length), {1, 1, 2}).ok()) << length;
  for (size_t length = 0; length < jpeg.size() - 2; ++length)  // as does the end marker
    EXPECT_FALSE(decodeError(jpeg.substr(0, length), {1, 16, 16}).ok()) << length;
  expectError(decodeError("GIF89a", {1, 1, 1}), "f: neither PNG nor JPEG");
  expectError(decodeError("\x89PNG\r\n", {1, 1, 1}), "f: damaged picture: ");
}

class Images : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"cat", "ant", ".hidden"}) std::filesystem::create_directory(folder_ / name);
    folder_.write("cat/2.png", greyPng(2, {5, 6}));
    folder_.write("cat/10.PNG", greyPng(2, {3, 4}));
    folder_.write("ant/a.png", greyPng(2, {1, 2}));
    folder_.write("ant/notes.txt", "not a picture");
  }

  Result<BoundDataset> open() { return openDataset("images:" + folder_.path(), inputs_); }

  TemporaryFolder folder_;
  std::vector<InputSpec> inputs_ = {{{"x", DataType::ui8, {4, 1, 1, 2}}},
                                    {{"labels", DataType::i32, {4}}, 2}};
};

TEST_F(Images, ClassesAndPicturesAreInByteOrder) {
  Result<BoundDataset> bound = open();
  ASSERT_TRUE(bound.ok()) << bound.message();
  const Dataset& dataset = *bound->dataset;
  EXPECT_EQ(dataset.size(), 3);
  std::vector<uint8_t> x(6);
  std::vector<int32_t> labels(3);
  std::vector<int64_t> rows = {2, 0, 1};
  ASSERT_TRUE(dataset.copyRows(rows, 0, reinterpret_cast<std::byte*>(x.data())).ok());
  ASSERT_TRUE(dataset.copyRows(rows, 1, reinterpret_cast<std::byte*>(labels.data())).ok());
  EXPECT_EQ(x, (std::vector<uint8_t>{5, 6, 1, 2, 3, 4}));  // "10.PNG" stands before "2.png"
  EXPECT_EQ(labels, (std::vector<int32_t>{1, 0, 1}));
}

TEST_F(Images, ClassesHaveTheNamesOfTheirFolders) {
  Result<BoundDataset> bound = open();
  ASSERT_TRUE(bound.ok()) << bound.message();
  std::span<const std::string> classes = bound->dataset->classes();
  EXPECT_EQ(std::vector<std::string>(classes.begin(), classes.end()),
            (std::vector<std::string>{"ant", "cat"}));
}

TEST_F(Images, WhatIsLeftOutIsToldOnce) {
  folder_.write("cat/3.webp", "RIFF");
  folder_.write("ant/b.TIFF", "II");
  std::filesystem::create_directory(folder_ / "ant/young");
  std::filesystem::create_directory(folder_ / "ant/.thumbnails");
  const KeptWarnings warnings;
  Result<BoundDataset> bound = open();
  ASSERT_TRUE(bound.ok()) << bound.message();
  EXPECT_EQ(bound->dataset->size(), 3);
  ASSERT_EQ(warnings.lines().size(), 1u);
  EXPECT_EQ(warnings.lines()[0], folder_.path() + ": left out is " + (folder_ / "ant/b.TIFF") +
                                     " and 2 more: pictures of a class are the .png, .jpg and .jpeg files of "
                                     "its folder, not those of folders within");
}

TEST_F(Images, LabelsAreI64WhereTheInputTakesThat) {
  inputs_[1].tensor.type = DataType::i64;
  Result<BoundDataset> bound = open();
  ASSERT_TRUE(bound.ok()) << bound.message();
  std::vector<int64_t> labels(3), rows = {2, 0, 1};
  ASSERT_TRUE(bound->dataset->copyRows(rows, 1, reinterpret_cast<std::byte*>(labels.data())).ok());
  EXPECT_EQ(labels, (std::vector<int64_t>{1, 0, 1}));
}

TEST_F(Images, TheFirstBadPictureIsNamed) {
  folder_.write("cat/3.png", "x");
  folder_.write("cat/1.png", greyPng(1, {5, 6}));
  expectError(open(), "cat/1.png: 1x2 pixels, but the plan's input x wants 2x1");
}

TEST_F(Images, AClassTooFewIsAnError) {
  std::filesystem::remove_all(folder_ / "ant");
  expectError(open(), "has 1 class folders, but the plan's labels have 2 classes");
}

TEST_F(Images, RefusesFoldersWithoutPictures) {
  std::filesystem::remove(folder_ / "ant/a.png");
  expectError(open(), "ant: has no .png, .jpg or .jpeg files");
  expectError(openImages(folder_ / "ant", inputs_), "has no folders: expected one for each class");
  expectError(openImages(folder_ / "none", inputs_), "none: cannot be listed: No such file or directory");
}

TEST_F(Images, RefusesAPlanThatTakesNoPictures) {
  inputs_[0].tensor.shape = {4, 2, 1, 1};
  expectError(open(), "input x is 4x2x1x1xui8, but pictures feed ui8 of [batch, 1 or 3, height, width]");
  inputs_[0].tensor.name = "pixels";
  expectError(open(), "the plan has no input x");
}

TEST(ScratchFile, SaysHowMuchRoomIsMissing) {
  expectError(ScratchFile::create(size_t{1} << 60),
              "no room for a temporary file of 1152921504606846976 bytes");
  Result<ScratchFile> scratch = ScratchFile::create(3);
  ASSERT_TRUE(scratch.ok()) << scratch.message();
  scratch->bytes()[2] = std::byte{9};
  EXPECT_EQ(scratch->bytes().size(), 3u);
}

}  // namespace
}  // namespace gpuc
