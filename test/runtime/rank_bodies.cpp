#include "rank_bodies.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "runtime/base/half.h"
#include "runtime/comm/rank_sum.h"

namespace gpuc {
namespace {

/// The part of a rank: numbers whose sums depend on their order, the same in any process.
template <typename T>
std::vector<T> partOf(int64_t rank, size_t elements) {
  std::vector<T> part(elements);
  uint64_t random = static_cast<uint64_t>(rank) + 1;
  for (T& value : part) {
    random = random * 6364136223846793005 + 1442695040888963407;
    const double scale = static_cast<double>(uint64_t{1} << (random >> 58 & 31)) * 0x1p-30;
    value = static_cast<T>(static_cast<double>(random >> 32 & 0xffffff) * scale);
  }
  return part;
}

template <typename T>
Status checkSum(Communicator& ranks, DataType type, size_t elements) {
  std::vector<T> expected(elements), mine = partOf<T>(ranks.rank(), elements), result(elements);
  for (int64_t rank = 0; rank < ranks.size(); ++rank) {
    const std::vector<T> part = partOf<T>(rank, elements);
    for (size_t i = 0; i < elements; ++i) expected[i] += part[i];
  }
  auto bytes = [](std::vector<T>& values) { return reinterpret_cast<std::byte*>(values.data()); };
  GPUC_RETURN_IF_ERROR(ranks.allReduce(type, elements, bytes(mine), bytes(result)));
  if (elements > 0 && std::memcmp(result.data(), expected.data(), elements * sizeof(T)) != 0)
    return errorf("rank %d: another sum of %zu", int(ranks.rank()), elements);
  GPUC_RETURN_IF_ERROR(ranks.allReduce(type, elements, bytes(mine), bytes(mine)));  // in place
  if (mine != expected) return errorf("rank %d: another sum of %zu in place", int(ranks.rank()), elements);
  return okStatus();
}

/// Tensors one behind the other, and where each lies.
struct Tensors {
  explicit Tensors(const std::vector<size_t>& sizes) {
    bytes.resize(std::accumulate(sizes.begin(), sizes.end(), size_t{0}));
    std::byte* next = bytes.data();
    for (size_t size : sizes) {
      places.push_back(next);
      next += size;
    }
  }
  Tensors(Tensors&&) = default;

  std::byte* tensor(size_t number) const { return static_cast<std::byte*>(places[number]); }
  std::vector<const void*> constPlaces() const { return {places.begin(), places.end()}; }

  std::vector<std::byte> bytes;
  std::vector<void*> places;
};

Tensors wholesOf(const Shares& shares, size_t element) {
  std::vector<size_t> sizes;
  for (const Piece& piece : shares.pieces)
    sizes.insert(sizes.end(), shares.tensorsOfPiece(), piece.elements / shares.tensorsOfPiece() * element);
  return Tensors(sizes);
}

Tensors zeroShares(const Shares& shares, size_t element) {
  std::vector<size_t> sizes;
  for (const Piece& piece : shares.pieces) sizes.push_back(piece.each * element);
  return Tensors(sizes);
}

/// What a rank has of sums, element by element.
Tensors sharesOf(const Shares& shares, size_t rank, size_t element, const Tensors& wholes) {
  Tensors own = zeroShares(shares, element);
  for (size_t number = 0; number < shares.pieces.size(); ++number)
    for (size_t i = 0; i < shares.pieces[number].each; ++i)
      if (const size_t place = rank * shares.pieces[number].each + i; place < shares.pieces[number].elements)
        std::memcpy(own.tensor(number) + i * element,
                    wholes.tensor(number * shares.tensorsOfPiece()) + place * element, element);
  return own;
}

Status checkShares(Communicator& ranks, DataType type, const std::vector<uint64_t>& tensors,
                   uint64_t owners = 0) {
  const auto element = static_cast<size_t>(sizeOf(type)), own = static_cast<size_t>(ranks.rank());
  const Shares shares = *Shares::of(tensors, static_cast<uint64_t>(ranks.size()), element, owners);
  const size_t elements = shares.whole_bytes / element;
  std::vector<Tensors> parts;
  std::vector<const std::byte*> places;
  for (int64_t rank = 0; rank < ranks.size(); ++rank) {
    const std::vector<float> numbers = partOf<float>(rank, elements);  // of any type: some bytes
    std::vector<std::byte>& bytes = parts.emplace_back(wholesOf(shares, element)).bytes;
    std::memcpy(bytes.data(), numbers.data(), std::min(bytes.size(), numbers.size() * sizeof(float)));
    for (std::byte& byte : bytes) byte &= std::byte{0xbf};  // of floats: finite
    places.push_back(bytes.data());
  }
  Tensors sums = wholesOf(shares, element), mine = zeroShares(shares, element),
          wholes = wholesOf(shares, element);
  sumParts(type, elements, places, sums.bytes.data());
  GPUC_RETURN_IF_ERROR(ranks.reduceScatter(type, shares, parts[own].constPlaces(), mine.places));
  if (mine.bytes != sharesOf(shares, own, element, sums).bytes)
    return errorf("rank %zu: another share of %zu %s", own, elements, nameOf(type));
  GPUC_RETURN_IF_ERROR(ranks.allGather(type, shares, mine.constPlaces(), wholes.places));
  if (wholes.bytes != sums.bytes)
    return errorf("rank %zu: gathered something else of %zu %s", own, elements, nameOf(type));
  return okStatus();
}

/// Any bytes as numbers of a type that has them: floats that are finite.
Status checkBytes(Communicator& ranks, DataType type, size_t elements) {
  const size_t bytes = elements * static_cast<size_t>(sizeOf(type));
  std::vector<std::vector<std::byte>> parts;
  std::vector<const std::byte*> places;
  for (int64_t rank = 0; rank < ranks.size(); ++rank) {
    uint32_t random = static_cast<uint32_t>(rank + 1);
    for (std::byte& byte : parts.emplace_back(bytes)) {
      random = random * 1664525 + 1013904223;
      byte = std::byte(random >> 24 & 0xbf);
    }
    places.push_back(parts.back().data());
  }
  std::vector<std::byte> expected(bytes), result(bytes);
  sumParts(type, elements, places, expected.data());
  GPUC_RETURN_IF_ERROR(
      ranks.allReduce(type, elements, places[static_cast<size_t>(ranks.rank())], result.data()));
  if (result != expected)
    return errorf("rank %d: other bytes in %zu of %s", int(ranks.rank()), elements, nameOf(type));
  return okStatus();
}

}  // namespace

Result<int> addUpInTheirOrder(Communicator& ranks) {
  for (size_t elements : {0, 1, 3, 64, 1000, 131072, 131073, 262145, 600001}) {
    GPUC_RETURN_IF_ERROR(checkSum<double>(ranks, DataType::f64, elements));
    GPUC_RETURN_IF_ERROR(checkSum<float>(ranks, DataType::f32, elements));
    GPUC_RETURN_IF_ERROR(checkSum<int64_t>(ranks, DataType::i64, elements));
  }
  for (DataType type : {DataType::f64, DataType::f32, DataType::f16, DataType::bf16, DataType::i64,
                        DataType::i32, DataType::i8, DataType::ui8})
    for (size_t elements : {77, 70001}) GPUC_RETURN_IF_ERROR(checkBytes(ranks, type, elements));
  return 0;
}

Result<int> shareOutAndGather(Communicator& ranks) {
  const std::vector<std::vector<uint64_t>> lists = {
      {1}, {3}, {64}, {1, 1, 1}, {7, 64, 1000, 3}, {600001}, {5, 300000, 2, 131072, 9}, {1048577, 11}};
  for (const DataType type : {DataType::f32, DataType::bf16, DataType::i64})
    for (const std::vector<uint64_t>& pieces : lists) GPUC_RETURN_IF_ERROR(checkShares(ranks, type, pieces));
  // Each of as many equal tensors as there are owners is one rank's, and the ranks behind have none.
  const auto all = static_cast<uint64_t>(ranks.size());
  for (const uint64_t owners : {all / 2 + 1, all})
    for (const std::vector<uint64_t>& pieces : {std::vector<uint64_t>{3}, {7, 64, 1000, 3}, {5, 140001, 9}}) {
      std::vector<uint64_t> tensors;
      for (const uint64_t elements : pieces) tensors.insert(tensors.end(), owners, elements);
      GPUC_RETURN_IF_ERROR(checkShares(ranks, DataType::f32, tensors, owners));
    }
  return 0;
}

Result<int> handOnBytesOfAnyLength(Communicator& ranks) {
  for (size_t length : {0, 1, 7, 1048576, 1048577, 2400000}) {
    const int64_t root = ranks.size() - 1;
    std::vector<std::byte> bytes(length, std::byte(ranks.rank() + 1)),
        all(length * static_cast<size_t>(ranks.size()));
    GPUC_RETURN_IF_ERROR(ranks.gather(bytes, all));
    for (size_t i = 0; i < all.size(); ++i)
      if (all[i] != std::byte(i / length + 1)) return Status::error("gathered something else");
    GPUC_RETURN_IF_ERROR(ranks.broadcast(bytes, root));
    if (bytes != std::vector<std::byte>(length, std::byte(root + 1))) return Status::error("another's bytes");
  }
  return 0;
}

Result<int> mixCollectives(Communicator& ranks) {
  constexpr size_t kElements = 50000;
  std::vector<int32_t> sum(kElements), sent(kElements), all(static_cast<size_t>(ranks.size()));
  for (int32_t i = 0; i < 200; ++i) {
    const int64_t root = i % ranks.size();
    const int32_t mine = i + static_cast<int32_t>(ranks.rank());
    std::fill(sum.begin(), sum.end(), mine);
    std::fill(sent.begin(), sent.end(), mine);
    if (ranks.rank() == (i + 1) % ranks.size()) ::usleep(200);
    auto* bytes = reinterpret_cast<std::byte*>(sum.data());
    GPUC_RETURN_IF_ERROR(ranks.allReduce(DataType::i32, kElements, bytes, bytes));
    GPUC_RETURN_IF_ERROR(ranks.broadcast(std::as_writable_bytes(std::span(sent)), root));
    GPUC_RETURN_IF_ERROR(
        ranks.gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all))));
    const int32_t expected = std::accumulate(all.begin(), all.end(), 0);
    for (size_t k = 0; k < kElements; ++k)
      if (sum[k] != expected || sent[k] != i + root)
        return errorf("round %d: %d of %d, %d", i, sum[k], expected, sent[k]);
  }
  return 0;
}

Status addUp(Communicator& ranks, size_t elements) { return checkSum<float>(ranks, DataType::f32, elements); }

}  // namespace gpuc
