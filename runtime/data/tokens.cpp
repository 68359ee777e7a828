#include <algorithm>

#include "runtime/base/file_kind.h"
#include "runtime/base/warn.h"
#include "runtime/data/formats.h"
#include "runtime/state/mapped_file.h"

namespace gpuc {
namespace {

/// Its fields are x, then labels.
class TokenDataset : public Dataset {
 public:
  TokenDataset(std::vector<DatasetField> fields, MappedFile file, TokenFormat format, int64_t length,
               int64_t size)
      : Dataset(size, std::move(fields)), file_(std::move(file)), format_(format), length_(length) {}

  Status copySample(int64_t row, size_t field, std::byte* destination) const override {
    const auto first = static_cast<size_t>(row * length_) + field;  // labels lie one token later
    for (int64_t i = 0; i < length_; ++i)
      storeInteger(destination, fields()[field].sample.type, i, tokenAt(first + static_cast<size_t>(i)));
    return okStatus();
  }

 private:
  uint16_t tokenAt(size_t index) const {
    const char* bytes = file_.bytes().data();
    if (format_ == TokenFormat::bytes) return static_cast<uint8_t>(bytes[index]);
    return static_cast<uint16_t>(static_cast<uint8_t>(bytes[2 * index]) |
                                 static_cast<uint8_t>(bytes[2 * index + 1]) << 8);
  }

  MappedFile file_;
  TokenFormat format_;
  int64_t length_;  // tokens of a sample
};

/// The type of an input that takes tokens; i32 if there is none of that name.
Result<DataType> tokenType(std::span<const InputSpec> inputs, const std::string& name) {
  const InputSpec* input = findInput(inputs, name);
  if (!input) return DataType::i32;
  if (input->tensor.type != DataType::i32 && input->tensor.type != DataType::i64)
    return errorf("the plan's input %s is %s, but tokens are i32 or i64", name.c_str(),
                  input->tensor.str().c_str());
  return input->tensor.type;
}

/// How many tokens a sample of the input `x` holds.
Result<int64_t> runLength(const std::string& path, std::span<const InputSpec> inputs) {
  const InputSpec* x = findInput(inputs, "x");
  if (!x) return Status::error(path + ": the plan has no input x, which is what takes tokens");
  if (x->tensor.shape.size() < 2 || x->tensor.shape[0] < 1)
    return errorf("%s: the plan's input x is %s, but tokens need batch and length", path.c_str(),
                  x->tensor.str().c_str());
  return x->tensor.elementCount() / x->tensor.shape[0];
}

/// Whether words of 16 bits are those of wider numbers, every second of which is 0, or small where the
/// vocabulary is larger than 16 bits: so int32 and int64 of NumPy lie in a file.
bool looksWider(std::string_view bytes) {
  constexpr size_t kLeastWords = 64, kMostWords = size_t{1} << 16;
  const size_t words = std::min(bytes.size() / 2, kMostWords);
  int greatest = 0;                    // at odd places
  size_t others_than_0 = 0, wide = 0;  // at even places: of int64 half of them are 0
  for (size_t i = 0; i < words; ++i) {
    const int word = static_cast<uint8_t>(bytes[2 * i]) | static_cast<uint8_t>(bytes[2 * i + 1]) << 8;
    if (i % 2 == 1) {
      greatest = std::max(greatest, word);
    } else {
      others_than_0 += word != 0;
      wide += word >= 256;
    }
  }
  if (words < kLeastWords) return false;
  return greatest == 0 ? others_than_0 >= words / 8 : greatest < 16 && wide >= words / 8;
}

}  // namespace

Result<std::unique_ptr<Dataset>> openTokens(const std::string& path, TokenFormat format,
                                            std::span<const InputSpec> inputs) {
  GPUC_ASSIGN_OR_RETURN(int64_t length, runLength(path, inputs));
  GPUC_ASSIGN_OR_RETURN(DataType x_type, tokenType(inputs, "x"));
  GPUC_ASSIGN_OR_RETURN(DataType labels_type, tokenType(inputs, "labels"));
  GPUC_ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(path));
  // Bytes are bytes: those of an array's file would train as well as those of a text.
  if (isCertain(fileKindOf(file.bytes())))
    return Status::error(path + ": not " + (format == TokenFormat::bytes ? "text" : "raw tokens") +
                         explainFileKind(file.bytes(), FileRole::data));
  size_t token_bytes = format == TokenFormat::bytes ? 1 : 2;
  if (file.bytes().size() % token_bytes != 0)
    return errorf("%s: cut short: %zu bytes, but tokens of 16 bits come in pairs of bytes", path.c_str(),
                  file.bytes().size());
  int64_t tokens = static_cast<int64_t>(file.bytes().size() / token_bytes);
  if (length < 1 || tokens <= length)
    return errorf("%s: %lld tokens, but a sample takes %lld and the one that follows", path.c_str(),
                  static_cast<long long>(tokens), static_cast<long long>(length));
  if (format == TokenFormat::uint16 && looksWider(file.bytes()))
    warn(path +
         ": every second token is 0 or small, as where a token has 32 or 64 bits, and 16 are read: "
         "save them by tokens.astype('<u2').tofile(FILE)");
  std::vector<DatasetField> fields = {
      {{"x", x_type, {length}}, path},
      {{"labels", labels_type, {length}}, path, /*may_idle=*/true},
  };
  return std::unique_ptr<Dataset>(
      new TokenDataset(std::move(fields), std::move(file), format, length, (tokens - 1) / length));
}

}  // namespace gpuc
