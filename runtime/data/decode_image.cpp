#include "runtime/data/decode_image.h"

#include <png.h>
#include <turbojpeg.h>

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

Status decodePng(std::string_view bytes, const std::string& name, const ImageShape& shape,
                 std::vector<uint8_t>& pixels) {
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  auto release = [](png_image* to_free) { png_image_free(to_free); };
  std::unique_ptr<png_image, decltype(release)> guard(&image, release);
  if (!png_image_begin_read_from_memory(&image, bytes.data(), bytes.size()))
    return damaged(name, image.message);
  GPUC_RETURN_IF_ERROR(checkSize(name, image.height, image.width, shape));
  image.format = shape.channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  png_color black = {0, 0, 0};
  if (!png_image_finish_read(&image, &black, pixels.data(), 0, nullptr)) return damaged(name, image.message);
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
