// Folders of pictures: order, labels, colours, and what is refused.
#include <gtest/gtest.h>
#include <png.h>
#include <turbojpeg.h>

#include <filesystem>

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

/// A JPEG of one grey, `side` pixels each way.
std::string greyJpeg(int side, uint8_t grey) {
  std::vector<uint8_t> pixels(static_cast<size_t>(side * side), grey);
  tjhandle encoder = tjInitCompress();
  unsigned char* data = nullptr;
  unsigned long size = 0;
  EXPECT_EQ(tjCompress2(encoder, pixels.data(), side, 0, side, TJPF_GRAY, &data, &size, TJSAMP_GRAY, 95, 0),
            0);
  std::string bytes(reinterpret_cast<char*>(data), size);
  tjFree(data);
  tjDestroy(encoder);
  return bytes;
}

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
