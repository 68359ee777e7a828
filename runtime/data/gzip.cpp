#include "runtime/data/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <limits>

namespace gpuc {
namespace {

/// An inflate stream that ends itself.
struct Inflater {
  Inflater() { ready = inflateInit2(&stream, 15 + 16) == Z_OK; }  // 15: any window; +16: gzip, not zlib
  ~Inflater() { inflateEnd(&stream); }
  z_stream stream = {};
  bool ready = false;
};

/// zlib counts in 32 bits; larger buffers go in pieces.
uInt piece(size_t bytes) { return static_cast<uInt>(std::min<size_t>(bytes, 1u << 30)); }

}  // namespace

bool isGzip(std::string_view bytes) { return bytes.size() >= 2 && bytes[0] == '\x1f' && bytes[1] == '\x8b'; }

Result<std::string> gunzip(std::string_view bytes, const std::string& name, size_t most) {
  Inflater inflater;
  if (!inflater.ready) return Status::error(name + ": zlib has no memory to unpack it");
  z_stream& stream = inflater.stream;
  std::string output(std::min(most, std::max<size_t>(4096, bytes.size() * 4)), '\0');
  size_t read = 0, written = 0;
  while (true) {
    // Deflate packs at most 1032 to 1, so that growth by doubling stays in proportion to the file.
    if (written == most) return output;
    if (written == output.size()) output.resize(std::min(most, output.size() * 2));
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data() + read));
    stream.avail_in = piece(bytes.size() - read);
    stream.next_out = reinterpret_cast<Bytef*>(output.data() + written);
    stream.avail_out = piece(output.size() - written);
    uInt in = stream.avail_in, out = stream.avail_out;
    int code = inflate(&stream, Z_NO_FLUSH);
    read += in - stream.avail_in;
    written += out - stream.avail_out;
    if (code == Z_STREAM_END) {
      if (read == bytes.size()) break;
      if (!isGzip(bytes.substr(read)))
        return Status::error(name + ": " + std::to_string(bytes.size() - read) +
                             " bytes follow the end of the gzip data");
      inflateReset(&stream);
    } else if (code != Z_OK && code != Z_BUF_ERROR) {
      return Status::error(name + ": corrupt gzip data: " + (stream.msg ? stream.msg : "unknown reason"));
    } else if (read == bytes.size() && stream.avail_out > 0) {
      return Status::error(name + ": gzip data cut short after " + std::to_string(bytes.size()) + " bytes");
    }
  }
  output.resize(written);
  return output;
}

}  // namespace gpuc
