#include "runtime/comm/share_runs.h"

#include <cstring>

namespace gpuc {

ShareRuns::Place ShareRuns::placeOf(size_t piece, size_t rank, Piece::Run there) const {
  if (shares_.owners == 0) return {piece, there.begin * bytes_};
  return {piece * shares_.owners + rank, (there.begin - rank * shares_.pieces[piece].each) * bytes_};
}

const std::byte* ShareRuns::inWholes(size_t rank, ShareRun run, ConstPlaces wholes,
                                     std::byte* scratch) const {
  const std::byte* place = nullptr;
  forEach(run, [&](size_t piece, size_t first, size_t count, size_t before) {
    const Piece::Run there = shares_.pieces[piece].present(rank, first, count);
    if (there.count > 0) {
      const auto [tensor, offset] = placeOf(piece, rank, there);
      const std::byte* from = static_cast<const std::byte*>(wholes[tensor]) + offset;
      if (there.count == run.end - run.begin) {
        place = from;
        return;
      }
      std::memcpy(scratch + before * bytes_, from, there.count * bytes_);
    }
    std::memset(scratch + (before + there.count) * bytes_, 0, (count - there.count) * bytes_);
  });
  return place ? place : scratch;
}

void ShareRuns::toWholes(size_t rank, ShareRun run, const std::byte* from, Places wholes) const {
  forEach(run, [&](size_t piece, size_t first, size_t count, size_t before) {
    const Piece::Run there = shares_.pieces[piece].present(rank, first, count);
    if (there.count == 0) return;
    const auto [tensor, offset] = placeOf(piece, rank, there);
    std::memcpy(static_cast<std::byte*>(wholes[tensor]) + offset, from + before * bytes_,
                there.count * bytes_);
  });
}

const std::byte* ShareRuns::inShares(ShareRun run, ConstPlaces shares, std::byte* scratch) const {
  const std::byte* place = nullptr;
  forEach(run, [&](size_t piece, size_t first, size_t count, size_t before) {
    const std::byte* from = static_cast<const std::byte*>(shares[piece]) + first * bytes_;
    if (count == run.end - run.begin)
      place = from;
    else
      std::memcpy(scratch + before * bytes_, from, count * bytes_);
  });
  return place ? place : scratch;
}

}  // namespace gpuc
