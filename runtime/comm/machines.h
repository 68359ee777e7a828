// Ranks of several machines, of which those of one machine share memory.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "runtime/comm/communicator.h"
#include "runtime/comm/life_watch.h"
#include "runtime/comm/mesh.h"
#include "runtime/comm/shared_memory.h"

namespace gpuc {

/// Which ranks are where, if they follow one another machine by machine.
struct Machines {
  std::vector<int64_t> first = {0};  // rank of each machine, and behind the last

  /// None if a machine's ranks do not follow one another.
  static std::optional<Machines> of(std::span<const Life> lives);

  int64_t count() const { return static_cast<int64_t>(first.size()) - 1; }
  int64_t size(int64_t machine) const { return end(machine) - begin(machine); }
  int64_t begin(int64_t machine) const { return first[static_cast<size_t>(machine)]; }
  int64_t end(int64_t machine) const { return begin(machine + 1); }
  int64_t of(int64_t rank) const;
  int64_t smallest() const;
  /// Whether there is more than one, and some rank is not alone.
  bool shareAny() const { return count() > 1 && first.back() > count(); }
};

/// One rank's end. What a machine sends goes once, however many ranks it has, and the sums' order is that of
/// ranks: each machine adds its ranks' parts to the totals that came from the one before it, and hands them
/// on, and the last one has the sums, which go back the same way. So chunk follows chunk: in a step each
/// machine adds up one, while messages of those before and behind it are under way both ways.
///
/// Of a chunk each of a machine's first ranks, as many as the smallest machine has, carries a slice, its
/// *lane*; messages go from a rank to those of its lane. Where that would take longer, as for what is short,
/// and for what is sent once, all goes as by the mesh alone.
class MachinesCommunicator final : public Communicator {
 public:
  /// `mesh` is of all ranks, `memory` and `local` of this machine's; all must outlive it.
  MachinesCommunicator(MeshCommunicator& mesh, SharedRanks& memory, SharedCommunicator& local,
                       Machines machines);

  int64_t rank() const override { return mesh_.rank(); }
  int64_t size() const override { return mesh_.size(); }
  std::chrono::milliseconds limit() const override { return mesh_.limit(); }
  Status look() override;
  Status allReduce(DataType type, size_t elements, const std::byte* part, std::byte* result) override;
  Status reduceScatter(DataType type, const Shares& shares, std::span<const void* const> wholes,
                       std::span<void* const> own) override;
  Status allGather(DataType type, const Shares& shares, std::span<const void* const> own,
                   std::span<void* const> wholes) override;
  Status broadcast(std::span<std::byte> bytes, int64_t root) override;
  Status gather(std::span<const std::byte> mine, std::span<std::byte> all) override;

 private:
  /// Sums of `rows` times `width` numbers, so many rows a chunk. `are_shared_out`: of a row each rank has
  /// one, and a machine is sent those of its own ranks alone.
  struct Sums {
    DataType type;
    size_t rows = 0, width = 1;
    bool are_shared_out = false;
    size_t chunk_rows = 0;

    int64_t chunks() const { return static_cast<int64_t>((rows + chunk_rows - 1) / chunk_rows); }
    bool have(int64_t chunk) const { return chunk >= 0 && chunk < chunks(); }
  };
  /// Rows of a chunk or of a lane's slice of it, and elements of the chunk before the slice.
  struct Slice {
    size_t rows = 0, first_row = 0, begin = 0;
  };
  /// A message's elements of a slice.
  struct Range {
    size_t begin = 0, count = 0;
  };

  Status begin(CollectiveKind kind, DataType type, size_t count);
  /// None where the mesh is quicker, or memory does not do.
  std::optional<Sums> plan(DataType type, size_t rows, size_t width, bool are_shared_out) const;
  template <typename Put, typename Take>
  Status addUp(const Sums& sums, Put put, Take take);
  void sendAndReceive(const Sums& sums, int64_t step);
  void sumSlice(const Sums& sums, int64_t step);
  int64_t receivedAt(const Sums& sums, int64_t step) const;
  int64_t takenAt(const Sums& sums, int64_t step) const;

  static size_t rowsOf(const Sums& sums, int64_t chunk);
  Slice sliceOf(const Sums& sums, int64_t chunk, int64_t lane) const;
  Range sentTo(const Sums& sums, const Slice& slice, int64_t machine) const;

  int64_t last() const { return machines_.count() - 1; }
  bool hasLane() const { return local_rank_ < lanes_; }
  int64_t inLane(int64_t machine) const { return machines_.begin(machine) + local_rank_; }
  std::byte* part(int64_t local_rank, int64_t step) const;
  std::byte* results(int64_t step) const;
  void gatherBetweenMachines(const std::byte* runs, size_t bytes);

  MeshCommunicator& mesh_;
  SharedRanks& memory_;
  SharedCommunicator& local_;
  const Machines machines_;
  const int64_t machine_, local_rank_, lanes_;
  size_t slot_bytes_, memory_bytes_;            // that each machine has
  std::vector<std::byte> incoming_, outgoing_;  // totals of a slice
  std::vector<const std::byte*> parts_;         // of a slice, of this machine's ranks
};

}  // namespace gpuc
