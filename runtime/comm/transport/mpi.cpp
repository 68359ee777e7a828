#include "runtime/comm/transport/mpi.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <type_traits>

#include "runtime/base/last_line.h"
#include "runtime/comm/transport/mpi_abi.h"
#include "runtime/comm/transport/yields.h"

namespace gpuc {
namespace {

constexpr std::chrono::microseconds kRest{50};

template <typename Abi>
class MpiTransport final : public Transport {
 public:
  using Handle = typename Abi::Handle;

  MpiTransport(void* library, const MpiFunctions<Abi>& mpi, int64_t rank, int64_t size)
      : Transport(rank, size),
        mpi_(mpi),
        world_(Abi::world(library)),
        byte_(Abi::byte(library)),
        requests_(static_cast<size_t>(size)) {}

  void send(int64_t to, Label label, std::span<const std::byte> bytes) override {
    Requests& requests = requests_[static_cast<size_t>(to)];
    const auto free =
        static_cast<size_t>(std::find(requests.is_sending.begin(), requests.is_sending.end(), false) -
                            requests.is_sending.begin());
    if (free == kMostSends) {
      lineTo(to).broken = "has more messages to take than can be under way";
      return;
    }
    const int code = mpi_.isend(bytes.data(), static_cast<int>(bytes.size()), byte_, static_cast<int>(to),
                                label, world_, &requests.sends[free]);
    if (!isFine(to, code)) return;
    requests.is_sending[free] = true;
    ++lineTo(to).sends;
  }

  void receive(int64_t from, std::span<std::byte> bytes) override {
    const int code = mpi_.irecv(bytes.data(), static_cast<int>(bytes.size()), byte_, static_cast<int>(from),
                                kMpiAnyTag, world_, &requests_[static_cast<size_t>(from)].receive);
    lineTo(from).is_receiving = isFine(from, code);
  }

  bool progress() override {
    bool has_moved = false;
    for (int64_t rank = 0; rank < size(); ++rank) {
      Line& line = lineTo(rank);
      if (line.is_receiving) has_moved |= testReceive(rank, line);
      if (line.sends > 0) has_moved |= testSends(rank, line);
    }
    return has_moved;
  }

  void rest(int64_t idle_calls) override {
    if (!yields_.next(idle_calls, Yields::most(isCrowded()))) std::this_thread::sleep_for(kRest);
  }

  Status close() override {
    if (mpi_.finalize() == 0) return okStatus();
    return Status::error("MPI_Finalize fails");
  }

 private:
  struct Requests {
    Handle receive = {};
    std::array<Handle, kMostSends> sends = {};
    std::array<bool, kMostSends> is_sending = {};
  };

  bool testReceive(int64_t rank, Line& line) {
    int is_done = 0;
    typename Abi::MessageStatus message = {};
    const int code = mpi_.test(&requests_[static_cast<size_t>(rank)].receive, &is_done, &message);
    if (isFine(rank, code) && !is_done) return false;
    line.is_receiving = false;
    line.label = message.tag;
    line.length = message.bytes();
    return true;
  }

  bool testSends(int64_t rank, Line& line) {
    Requests& requests = requests_[static_cast<size_t>(rank)];
    bool has_moved = false;
    for (size_t i = 0; i < kMostSends; ++i) {
      if (!requests.is_sending[i]) continue;
      int is_done = 0;
      typename Abi::MessageStatus message = {};
      if (isFine(rank, mpi_.test(&requests.sends[i], &is_done, &message)) && !is_done) continue;
      requests.is_sending[i] = false;
      --line.sends;
      has_moved = true;
    }
    return has_moved;
  }

  /// If not, the line is broken, in MPI's own words.
  bool isFine(int64_t rank, int code) {
    if (code == 0) return true;
    int error_class = 0, length = 0;
    std::array<char, kMpiMostErrorText + 1> text = {};
    mpi_.error_class(code, &error_class);
    mpi_.error_string(code, text.data(), &length);
    lineTo(rank).broken = error_class == Abi::kTruncated
                              ? "asks for something else: all must run the same plan"
                              : "cannot be reached: " + std::string(text.data(), static_cast<size_t>(length));
    return false;
  }

  const MpiFunctions<Abi> mpi_;
  const Handle world_, byte_;
  std::vector<Requests> requests_;  // by rank
  Yields yields_;
};

//===----------------------------------------------------------------------===//
// Who does not come
//===----------------------------------------------------------------------===//

/// As long as it lives MPI may wait for all ranks to begin, which nothing can call off: if one has ended, or
/// none has come for too long, the process ends.
class WaitWatch {
 public:
  WaitWatch(int64_t rank, const RanksHere& here, std::chrono::milliseconds limit)
      : rank_(rank), limit_(limit), absent_(here), thread_([this] { watch(); }) {}
  WaitWatch(const WaitWatch&) = delete;
  ~WaitWatch() {
    {
      const std::scoped_lock lock(mutex_);
      is_over_ = true;
    }
    over_.notify_one();
    thread_.join();
  }

 private:
  static constexpr std::chrono::milliseconds kLook{200};
  /// In which a launcher ends all others when the rank that speaks has ended.
  static constexpr std::chrono::seconds kLetAnotherSpeak{5};

  void watch() {
    const auto end = std::chrono::steady_clock::now() + limit_;
    std::unique_lock lock(mutex_);
    while (!over_.wait_for(lock, kLook, [this] { return is_over_; })) {
      if (const std::optional<int64_t> ended = absent_.look())
        return endWith(lock, AbsentRanks::wordsOf(*ended), rank_ == (*ended == 0 ? 1 : 0));
      if (std::chrono::steady_clock::now() >= end)
        return endWith(lock,
                       "MPI_Init has waited for " + std::to_string(limit_.count() / 1000) +
                           " s, and not all ranks have come to it",
                       rank_ == 0);
    }
  }

  /// Unless they come meanwhile.
  void endWith(std::unique_lock<std::mutex>& lock, const std::string& why, bool is_speaker) {
    if (!is_speaker && over_.wait_for(lock, kLetAnotherSpeak, [this] { return is_over_; })) return;
    endWithError({why});
  }

  const int64_t rank_;
  const std::chrono::milliseconds limit_;
  AbsentRanks absent_;
  std::mutex mutex_;
  std::condition_variable over_;
  bool is_over_ = false;
  std::thread thread_;
};

//===----------------------------------------------------------------------===//
// The library
//===----------------------------------------------------------------------===//

struct Library {
  void* handle = nullptr;
  std::string name;
};

struct Flavour {
  const char* name;
  std::vector<const char*> files;  // the first that is there is taken
  const char* package;
};

const Flavour& flavourOf(MpiFlavour flavour) {
  static const Flavour open_mpi{"OpenMPI", {"libmpi.so.40", "libmpi.so"}, "libopenmpi3"};
  static const Flavour mpich{"MPICH", {"libmpich.so.12", "libmpi.so.12", "libmpi.so"}, "libmpich12"};
  static const Flavour any{
      "MPI", {"libmpi.so.40", "libmpich.so.12", "libmpi.so.12", "libmpi.so"}, "libopenmpi3 or libmpich12"};
  return flavour == MpiFlavour::open_mpi ? open_mpi : flavour == MpiFlavour::mpich ? mpich : any;
}

/// Its plugins look for its symbols among those of the process.
Result<Library> openLibrary(const Flavour& flavour) {
  std::string why;
  for (const char* file : flavour.files) {
    if (void* handle = ::dlopen(file, RTLD_NOW | RTLD_GLOBAL)) return Library{handle, file};
    why += (why.empty() ? "" : "; ") + std::string(::dlerror());
  }
  return Status::error(std::string("no ") + flavour.name +
                       ", whose launcher has started this: install its library (" + flavour.package +
                       " on Debian), or put it on LD_LIBRARY_PATH: " + why);
}

template <typename Abi>
Result<std::unique_ptr<Transport>> begin(const Library& library, const Flavour& flavour, int64_t rank,
                                         int64_t size) {
  MpiFunctions<Abi> mpi;
  if (const char* missing = mpi.load(library.handle))
    return Status::error(library.name + " has no " + missing + ": is it a library of MPI?");
  int provided = 0, its_rank = -1, its_size = 0;
  if (mpi.init_thread(nullptr, nullptr, kMpiSerialized, &provided) != 0)
    return Status::error(library.name + " cannot begin: MPI_Init_thread fails");
  const typename Abi::Handle world = Abi::world(library.handle);
  mpi.set_errhandler(world, Abi::returnErrors(library.handle));
  if (provided < kMpiSerialized)
    return Status::error(library.name +
                         " is not made for programs with threads (MPI_THREAD_SERIALIZED is not " +
                         "granted): install one that is");
  mpi.comm_rank(world, &its_rank);
  mpi.comm_size(world, &its_size);
  if (its_rank != rank || its_size != size)
    return Status::error("the launcher says rank " + std::to_string(rank) + " of " + std::to_string(size) +
                         ", but " + library.name + " knows rank " + std::to_string(its_rank) + " of " +
                         std::to_string(its_size) + ": launcher and library are of different MPIs: install " +
                         flavour.package);
  return std::unique_ptr<Transport>(std::make_unique<MpiTransport<Abi>>(library.handle, mpi, rank, size));
}

}  // namespace

Result<std::unique_ptr<Transport>> openMpi(MpiFlavour flavour, int64_t rank, int64_t size,
                                           const RanksHere& here, std::chrono::milliseconds limit) {
  const Flavour& wanted = flavourOf(flavour);
  GPUC_ASSIGN_OR_RETURN(const Library library, openLibrary(wanted));
  const bool is_open_mpi = ::dlsym(library.handle, "ompi_mpi_comm_world") != nullptr;
  const WaitWatch watch(rank, here, limit);
  return is_open_mpi ? begin<OpenMpiAbi>(library, wanted, rank, size)
                     : begin<MpichAbi>(library, wanted, rank, size);
}

}  // namespace gpuc
