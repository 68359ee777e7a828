//===- StreamEvents.cpp - Events between commands on different streams ----------===//
//
// Each stream knows how far each other one has come: as far as the last event that it has waited for, and
// what was known there. A command whose predecessors are all known waits for nothing.
//
//===----------------------------------------------------------------------===//

#include "passes/plan/StreamEvents.h"

using namespace mlir;

namespace gpuc {
namespace {

class Events {
public:
  Events(const CommandGraph &graph, ArrayRef<plan::StreamOp> streams, plan::StreamOp main)
      : graph_(graph), streams_(streams), main_(main) {}

  void run() {
    knownAt_.resize(graph_.commands.size());
    for (size_t command = 0; command < graph_.commands.size(); ++command) {
      if (isUploadAside(command))
        continue;
      OpBuilder before(graph_.commands[command]);
      // The last one first: of a stream that leaves the others nothing to wait for.
      for (unsigned predecessor : llvm::reverse(graph_.predecessors[command]))
        waitFor(isUploadAside(predecessor) ? kBeginning : predecessor, streams_[command], before);
      // What waits for nothing of this run waits for the one before, which may be writing what it reads.
      if (!known_[streams_[command]].contains(main_))
        waitFor(kBeginning, streams_[command], before);
      Known &known = known_[streams_[command]];
      known[streams_[command]] = ++last_[streams_[command]].place;
      last_[streams_[command]].command = command;
      knownAt_[command] = known;
    }
    OpBuilder atEnd = OpBuilder::atBlockEnd(&main_.getBody().front());
    for (auto &[stream, last] : last_)
      waitFor(last.command, main_, atEnd);
  }

private:
  /// The place of the last command, of each stream, that has ended; the first one's is 1.
  using Known = llvm::SmallDenseMap<Operation *, int64_t, 2>;
  /// In place of a command: the point of the main stream at which uploads are done.
  static constexpr size_t kBeginning = std::numeric_limits<size_t>::max();

  bool isUploadAside(size_t command) {
    return isa<plan::UploadOp>(*graph_.commands[command]) && streams_[command] != main_;
  }

  void waitFor(size_t command, plan::StreamOp stream, OpBuilder &at) {
    const bool isBeginning = command == kBeginning;
    plan::StreamOp other = isBeginning ? main_ : streams_[command];
    const int64_t place = isBeginning ? 0 : knownAt_[command].lookup(other);
    auto known = known_[stream].find(other);
    if (other == stream || (known != known_[stream].end() && known->second >= place))
      return;
    plan::WaitOp::create(at, at.getInsertionBlock()->getParentOp()->getLoc(), eventBehind(command), 0);
    if (!isBeginning)
      for (auto [of, reached] : Known(knownAt_[command]))
        raise(known_[stream], of, reached);
    raise(known_[stream], other, place);
  }

  static void raise(Known &known, Operation *stream, int64_t place) {
    auto [entry, isNew] = known.try_emplace(stream, place);
    entry->second = std::max(entry->second, place);
  }

  Value eventBehind(size_t command) {
    auto [entry, isNew] = events_.try_emplace(command);
    if (!isNew)
      return entry->second;
    plan::StreamOp stream = command == kBeginning ? main_ : streams_[command];
    Block &block = stream.getBody().front();
    OpBuilder atDeclarations(firstStream());
    auto event = plan::EventOp::create(atDeclarations, stream.getLoc(),
                                       (stream.getName() + Twine(recorded_[stream]++)).str());
    OpBuilder behind(&block,
                     command == kBeginning ? block.begin() : ++Block::iterator(graph_.commands[command]));
    plan::RecordOp::create(behind, stream.getLoc(), event);
    return events_[command] = event;
  }

  Operation *firstStream() {
    auto program = main_->getParentOfType<plan::ProgramOp>();
    return (*program.getBody().getOps<plan::StreamOp>().begin()).getOperation();
  }

  struct Last {
    int64_t place = 0;
    size_t command = 0;
  };

  const CommandGraph &graph_;
  ArrayRef<plan::StreamOp> streams_;
  plan::StreamOp main_;
  llvm::MapVector<Operation *, Last> last_;
  DenseMap<Operation *, Known> known_; ///< By each stream.
  std::vector<Known> knownAt_;         ///< When a command has ended.
  llvm::DenseMap<size_t, Value> events_;
  DenseMap<Operation *, int64_t> recorded_;
};

} // namespace

void orderByEvents(const CommandGraph &graph, ArrayRef<plan::StreamOp> streams, plan::StreamOp main) {
  Events(graph, streams, main).run();
}

} // namespace gpuc
