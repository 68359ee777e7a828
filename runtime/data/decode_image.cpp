#include "runtime/data/decode_image.h"

#include <png.h>
#include <turbojpeg.h>

#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "runtime/base/file_kind.h"
#include "runtime/base/quote.h"

namespace gpuc {
namespace {

Status damaged(const std::string& name, const char* why) {
  return Status::error(name + ": damaged picture: " + inQuotes(why));
}

Status checkSize(const std::string& name, int64_t height, int64_t width, const ImageShape& shape) {
  if (height == shape.height && width == shape.width) return okStatus();
  return errorf(
      "%s: %lldx%lld pixels, but the plan's input x wants %lldx%lld (width x height): resize the picture",
      name.c_str(), static_cast<long long>(width), static_cast<long long>(height),
      static_cast<long long>(shape.width), static_cast<long long>(shape.height));
}

/// [height, width, channels] → [channels, height, width].
void toPlanes(const std::vector<uint8_t>& pixels, const ImageShape& shape, uint8_t* destination) {
  size_t channels = static_cast<size_t>(shape.channels);
  for (size_t channel = 0; channel < channels; ++channel)
    for (size_t i = channel; i < pixels.size(); i += channels) *destination++ = pixels[i];
}

/// A PNG's bytes that are not read yet, and what libpng had against them.
struct PngBytes {
  std::string_view left;
  char error[128] = "";
};

void takeBytes(png_structp png, png_bytep destination, size_t count) {
  auto& bytes = *static_cast<PngBytes*>(png_get_io_ptr(png));
  if (count > bytes.left.size()) png_error(png, "cut short");
  std::memcpy(destination, bytes.left.data(), count);
  bytes.left.remove_prefix(count);
}

[[noreturn]] void keepError(png_structp png, png_const_charp why) {
  auto& bytes = *static_cast<PngBytes*>(png_get_error_ptr(png));
  std::snprintf(bytes.error, sizeof bytes.error, "%s", why);
  png_longjmp(png, 1);
}

void passOver(png_structp, png_const_charp) {}

// libpng leaves what it was called by with longjmp: nothing in these two has a destructor.

bool readHeader(png_structp png, png_infop info) {
  if (setjmp(png_jmpbuf(png))) return false;
  png_read_info(png, info);
  return true;
}

/// [height, width, 4]: red, green, blue and alpha, a byte each, whatever the file has. They are the file's
/// own numbers, of 16 bits the upper 8: gamma and profiles are not looked at, as nobody does who trains on
/// them.
bool readPixels(png_structp png, png_infop info, uint8_t* pixels) {
  if (setjmp(png_jmpbuf(png))) return false;
  const png_uint_32 height = png_get_image_height(png, info), width = png_get_image_width(png, info);
  png_set_expand(png);
  png_set_strip_16(png);
  png_set_gray_to_rgb(png);
  png_set_add_alpha(png, 255, PNG_FILLER_AFTER);
  const int passes = png_set_interlace_handling(png);
  png_start_read_image(png);
  for (int pass = 0; pass < passes; ++pass)
    for (png_uint_32 row = 0; row < height; ++row)
      png_read_row(png, pixels + size_t{4} * width * row, nullptr);
  return true;
}

/// Laid over black; grey is ITU-R 601's, as libjpeg's and Pillow's are.
void flatten(const std::vector<uint8_t>& rgba, size_t channels, std::vector<uint8_t>& pixels) {
  uint8_t* destination = pixels.data();
  for (size_t i = 0; i < rgba.size(); i += 4) {
    auto over = [&](size_t channel) { return (rgba[i + channel] * rgba[i + 3] + 127u) / 255; };
    const uint32_t red = over(0), green = over(1), blue = over(2);
    if (channels == 1) {
      *destination++ = static_cast<uint8_t>((19595 * red + 38470 * green + 7471 * blue + 32768) >> 16);
    } else {
      for (uint32_t value : {red, green, blue}) *destination++ = static_cast<uint8_t>(value);
    }
  }
}

Status decodePng(std::string_view bytes, const std::string& name, const ImageShape& shape,
                 std::vector<uint8_t>& pixels) {
  PngBytes source{bytes};
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &source, keepError, passOver);
  png_infop info = png ? png_create_info_struct(png) : nullptr;
  auto release = [&](png_structp) { png_destroy_read_struct(&png, &info, nullptr); };
  std::unique_ptr<png_struct, decltype(release)> guard(png, release);
  if (!info) return Status::error(name + ": no memory for the PNG decoder");
  png_set_read_fn(png, &source, takeBytes);
  png_set_benign_errors(png, 1);
  if (!readHeader(png, info)) return damaged(name, source.error);
  GPUC_RETURN_IF_ERROR(
      checkSize(name, png_get_image_height(png, info), png_get_image_width(png, info), shape));
  std::vector<uint8_t> rgba(static_cast<size_t>(shape.height * shape.width * 4));
  if (!readPixels(png, info, rgba.data())) return damaged(name, source.error);
  flatten(rgba, static_cast<size_t>(shape.channels), pixels);
  return okStatus();
}

Status decodeJpeg(std::string_view bytes, const std::string& name, const ImageShape& shape,
                  std::vector<uint8_t>& pixels) {
  std::unique_ptr<void, int (*)(tjhandle)> decoder(tjInitDecompress(), tjDestroy);
  if (!decoder) return Status::error(name + ": no memory for the JPEG decoder");
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  int width = 0, height = 0, subsampling = 0, colours = 0;
  if (tjDecompressHeader3(decoder.get(), data, bytes.size(), &width, &height, &subsampling, &colours) != 0)
    return damaged(name, tjGetErrorStr2(decoder.get()));
  GPUC_RETURN_IF_ERROR(checkSize(name, height, width, shape));
  if (colours == TJCS_CMYK || colours == TJCS_YCCK)
    return Status::error(name + ": colours for print (CMYK): save the picture as RGB");
  if (tjDecompress2(decoder.get(), data, bytes.size(), pixels.data(), width, 0, height,
                    shape.channels == 1 ? TJPF_GRAY : TJPF_RGB,
                    TJFLAG_ACCURATEDCT | TJFLAG_STOPONWARNING) != 0)
    return damaged(name, tjGetErrorStr2(decoder.get()));
  return okStatus();
}

}  // namespace

Status decodeImage(std::string_view bytes, const std::string& name, const ImageShape& shape,
                   uint8_t* destination) {
  std::vector<uint8_t> pixels(static_cast<size_t>(shape.elementCount()));  // (height, width, channels)
  if (bytes.starts_with("\x89PNG"))
    GPUC_RETURN_IF_ERROR(decodePng(bytes, name, shape, pixels));
  else if (bytes.starts_with("\xff\xd8"))
    GPUC_RETURN_IF_ERROR(decodeJpeg(bytes, name, shape, pixels));
  else
    return Status::error(name + ": neither PNG nor JPEG" + explainFileKind(bytes, FileRole::data));
  toPlanes(pixels, shape, destination);
  return okStatus();
}

}  // namespace gpuc
