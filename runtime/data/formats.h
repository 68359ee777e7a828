// What --data can name, each kind opened: samples for the inputs of a plan.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/data/dataset.h"

namespace gpuc {

/// Checks the header of an IDX file (http://yann.lecun.com/exdb/mnist, "FILE FORMATS") of unsigned bytes
/// against its length and gives the extents. Data begin at byte 4 + 4 * rank. Errors begin with `name`: not
/// IDX, another element type, another rank, cut short, bytes too many.
Result<std::vector<int64_t>> parseIdx(std::string_view bytes, size_t rank, const std::string& name);

/// All files that openIdx may read.
std::vector<std::string> idxPaths(const std::string& prefix);

/// Opens PREFIX-images-idx3-ubyte and PREFIX-labels-idx1-ubyte, each plain or with .gz. Fields: `x`
/// (rows x columns, ui8) and `labels` (labelType(); may idle). Errors name the file and both numbers.
Result<std::unique_ptr<Dataset>> openIdx(const std::string& prefix, std::span<const InputSpec> inputs = {});

/// Opens one file for each field, as pairs of (field, path). The first extent of each counts the samples and
/// must be the same in all. Files are mapped, not read. Integers of another width than that of the input of
/// their name are served as that takes them: labels of NumPy and PyTorch are i64. Errors name the file (see
/// parseNpy), or two files and both counts, or the field that is named twice, or an integer that does not
/// fit.
Result<std::unique_ptr<Dataset>> openNpyDataset(const std::vector<std::pair<std::string, std::string>>& files,
                                                std::span<const InputSpec> inputs = {});

/// Opens FOLDER/CLASS/*.{png,jpg,jpeg}: classes are numbered by their folders' names in byte order, and so
/// are the pictures of a class. Fields: `x`, ui8 of the [channels, height, width] that the plan's input x
/// has, and `labels` (labelType()), which needs no input. All pictures are decoded here, by all cores, into a
/// file that has no name and goes with the data set: a step decodes and allocates nothing.
///
/// Errors: no such folder, no class folders, a class without pictures, another number of classes than the
/// plan's labels have, an input x that is no ui8 [batch, 1 or 3, height, width], whatever decodeImage
/// refuses, no room for the pixels. Pictures of other formats and folders within a class are left out, with
/// one warning that names the first.
Result<std::unique_ptr<Dataset>> openImages(const std::string& folder, std::span<const InputSpec> inputs);

/// How a file spells tokens.
enum class TokenFormat {
  bytes,   // each byte is a token: 0 … 255
  uint16,  // two bytes each, little-endian
};

/// Cuts the file into runs of T tokens, T being what a sample of the plan's input `x` holds; sample i begins
/// at token i·T. Fields, of the types that the plan's inputs have (i32 or i64): `x`, the run, and `labels`,
/// the same run one token later, which needs no input. The file is mapped, not read. Errors name the file:
/// it cannot be read, ends within a token, or holds fewer than T + 1 tokens; or the input that is missing or
/// is no run of integers.
Result<std::unique_ptr<Dataset>> openTokens(const std::string& path, TokenFormat format,
                                            std::span<const InputSpec> inputs);

/// Fills `destination` with sample `index` of input number `field`: a pure function of the arguments.
/// Floats have mean 0 and variance 1 (the sum of four random bytes, within ±3.45). Integers are uniform in
/// [0, range); without a range in [0, 256) for ui8, [0, 128) for i8, i32 and i64, and 0 or 1 for i1.
/// Bits come from Philox4x32-10(counter = {block, index low, index high, "syn\0" + field}, key = seed).
void fillSyntheticSample(const InputSpec& input, size_t field, uint64_t seed, int64_t index,
                         std::byte* destination);

/// `size` samples with a field for each input. Errors: size below 1, an input without a batch extent, a
/// range that its type cannot hold.
Result<std::unique_ptr<Dataset>> makeSyntheticDataset(std::span<const InputSpec> inputs, int64_t size,
                                                      uint64_t seed);

}  // namespace gpuc
