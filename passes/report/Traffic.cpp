//===- Traffic.cpp - Where commands find the bytes that they touch -------------===//

#include "passes/report/Traffic.h"

#include "passes/plan/CommandGraph.h"
#include "passes/plan/PlanAccess.h"
#include "passes/report/StackDistance.h"

using namespace mlir;

namespace gpuc {
namespace {

class Walk {
public:
  Walk(plan::ArenaOp arena, const CacheSizes &caches, WorkTable &works)
      : space_(arena), caches_(caches), works_(works), pageBytes_(pageBytesOf(arena.getBytes())),
        pages_(arena.getBytes() / pageBytes_ + 1), dirt_(arena.getBytes() / pageBytes_ + 1) {}

  /// Once as the first step, whose last touches the second one finds.
  LogicalResult run(plan::ProgramOp program) {
    for (double times : {0.0, 1.0})
      for (auto stream : program.getBody().getOps<plan::StreamOp>())
        if (failed(runBlock(stream.getBody().front(), times)))
          return failure();
    return success();
  }

  llvm::DenseMap<Operation *, Traffic> take() && {
    for (auto &[command, amounts] : traffic_)
      for (double &amount : amounts)
        amount /= static_cast<double>(llvm::product_of(tripCountsAround(command)));
    return std::move(traffic_);
  }

private:
  /// What memory does not have yet.
  struct Dirt {
    Operation *writer = nullptr;
    double share = 0; ///< Of the page.
  };

  /// Small arenas by cache lines, large ones by a few ten thousand pages.
  static int64_t pageBytesOf(int64_t arenaBytes) {
    int64_t bytes = 64;
    while (arenaBytes / bytes > (1 << 16))
      bytes *= 2;
    return bytes;
  }

  LogicalResult runBlock(Block &block, double times) {
    for (plan::CommandOpInterface command : commandsOf(block))
      if (failed(runCommand(command, times)))
        return failure();
    return success();
  }

  /// Of a loop the first iteration follows what came before it, the second one stands for all others.
  LogicalResult runCommand(plan::CommandOpInterface command, double times) {
    auto loop = dyn_cast<plan::LoopOpInterface>(*command);
    if (!loop)
      return touch(command, times);
    const int64_t count = loop.getTripCount();
    for (int64_t iteration = 0; iteration < std::min<int64_t>(count, 2); ++iteration) {
      iterations_.push_back(iteration);
      if (failed(runBlock(command->getRegion(0).front(), iteration == 0 ? times : times * (count - 1))))
        return failure();
      iterations_.pop_back();
    }
    return success();
  }

  LogicalResult touch(plan::CommandOpInterface command, double times) {
    if (isa<plan::UploadOp>(*command))
      return success(); // an input is read where the caller has it
    SmallVector<Access> accesses;
    if (failed(space_.append(command, 0, iterations_, accesses)))
      return failure();
    traffic_[command]; // of a command that touches nothing, too
    const double share = shareOf(command);
    for (const Access &access : accesses) {
      const Touch touched{command, access.write, isInPlace(access, accesses), times,
                          access.write ? 1 : share};
      touch(access.bytes(), touched);
    }
    return success();
  }

  /// What is written where the same command has read it, as weights are, lies in the core's cache by then.
  static bool isInPlace(const Access &access, ArrayRef<Access> accesses) {
    return access.write && llvm::any_of(accesses, [&](const Access &other) {
             return !other.write && other.bytes().begin <= access.bytes().begin &&
                    other.bytes().end >= access.bytes().end;
           });
  }

  /// Of tables that a kernel gathers from no more counts than that.
  double shareOf(plan::CommandOpInterface command) {
    int64_t all = 0;
    for (Value read : command.getReads())
      all += plan::rangeOf(read).size;
    return all == 0 ? 1 : static_cast<double>(works_[command].bytesRead) / static_cast<double>(all);
  }

  struct Touch {
    Operation *command;
    bool isWrite, isNear;
    double times; ///< That it stands for.
    double share; ///< Of the bytes that counts.
  };

  void touch(ByteRange range, const Touch &touched) {
    for (int64_t page = range.begin / pageBytes_; page * pageBytes_ < range.end; ++page) {
      const int64_t length =
          std::min(range.end, (page + 1) * pageBytes_) - std::max(range.begin, page * pageBytes_);
      const double bytes = touched.times * static_cast<double>(length);
      const BytesByPlace shares = sharesOf(pages_.touch(page), touched.isNear);
      Traffic &traffic = traffic_[touched.command];
      for (auto [place, share] : llvm::enumerate(shares))
        traffic[place] += bytes * touched.share * share;
      writeBack(dirt_[page], bytes, shares.back());
      if (touched.isWrite)
        dirt_[page] = {touched.command, 1};
    }
  }

  /// What is read from memory was put there since it was written.
  void writeBack(Dirt &dirt, double bytes, double share) {
    if (dirt.writer)
      traffic_[dirt.writer].back() += bytes * dirt.share * share;
    dirt.share *= 1 - share;
  }

  /// A cache has to hold the page and those that were touched since.
  BytesByPlace sharesOf(std::optional<int64_t> since, bool isNear) const {
    if (isNear)
      return {1, 0, 0};
    return since ? caches_.sharesAt((*since + 1) * pageBytes_) : BytesByPlace{0, 0, 1};
  }

  AddressSpace space_;
  CacheSizes caches_;
  WorkTable &works_;
  int64_t pageBytes_;
  StackDistance pages_;
  std::vector<Dirt> dirt_; ///< Of each page.
  SmallVector<int64_t> iterations_;
  llvm::DenseMap<Operation *, Traffic> traffic_;
};

} // namespace

FailureOr<llvm::DenseMap<Operation *, Traffic>> trafficOf(plan::ProgramOp program, const CacheSizes &caches,
                                                          WorkTable &works) {
  auto arenas = program->getParentOfType<ModuleOp>().getOps<plan::ArenaOp>();
  if (arenas.empty())
    return program.emitError("is not placed: plan-place-buffers comes first"), failure();
  Walk walk(*arenas.begin(), caches, works);
  if (failed(walk.run(program)))
    return failure();
  return std::move(walk).take();
}

} // namespace gpuc
