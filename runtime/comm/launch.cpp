#include "runtime/comm/launch.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/base/exceptions.h"
#include "runtime/base/last_line.h"
#include "runtime/comm/shared_memory.h"

namespace gpuc {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLook{20};

/// What a child leaves to be said, in memory that its parent sees.
struct LastWords {
  static constexpr size_t kMost = 4096;
  std::array<char, kMost> text = {};
};

class WordsOfRanks {
 public:
  static Result<WordsOfRanks> create(int64_t ranks) {
    WordsOfRanks words;
    words.bytes_ = static_cast<size_t>(ranks) * sizeof(LastWords);
    void* memory = ::mmap(nullptr, words.bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return Status::error("no memory for what ranks say at their end");
    words.words_ = static_cast<LastWords*>(memory);
    return words;
  }
  WordsOfRanks(WordsOfRanks&& other) noexcept
      : words_(std::exchange(other.words_, nullptr)), bytes_(other.bytes_) {}
  ~WordsOfRanks() {
    if (words_) ::munmap(words_, bytes_);
  }
  LastWords& operator[](size_t rank) const { return words_[rank]; }

 private:
  WordsOfRanks() = default;
  LastWords* words_ = nullptr;
  size_t bytes_ = 0;
};

// For the handler of signals, which may touch nothing else.
std::array<volatile pid_t, kMostRanks> children = {};

void handToChildren(int signal) {
  for (volatile pid_t& child : children)
    if (child > 0) ::kill(child, signal);
}

constexpr std::array<int, 2> kHandedOn = {SIGINT, SIGTERM};

/// As long as it lives, SIGINT and SIGTERM go to the ranks; they are kept back until release(), so that each
/// rank has what came while the others were started. A terminal sends SIGINT to them as well, which makes no
/// difference to who listens for it.
class SignalsHandedOn {
 public:
  SignalsHandedOn() {
    sigset_t kept_back;
    sigemptyset(&kept_back);
    for (int signal : kHandedOn) sigaddset(&kept_back, signal);
    ::sigprocmask(SIG_BLOCK, &kept_back, &former_mask_);
    struct sigaction action = {};
    action.sa_handler = handToChildren;
    action.sa_flags = SA_RESTART;
    for (size_t i = 0; i < kHandedOn.size(); ++i) ::sigaction(kHandedOn[i], &action, &former_[i]);
    // Who ignores it, be it since a shell did, is never told that a child has ended.
    action.sa_handler = SIG_DFL;
    ::sigaction(SIGCHLD, &action, &former_of_children_);
  }
  SignalsHandedOn(const SignalsHandedOn&) = delete;
  ~SignalsHandedOn() {
    for (size_t i = 0; i < kHandedOn.size(); ++i) ::sigaction(kHandedOn[i], &former_[i], nullptr);
    ::sigaction(SIGCHLD, &former_of_children_, nullptr);
    std::fill(children.begin(), children.end(), 0);
    release();
  }

  /// Also for a child, once it has a handler of its own, or none.
  void release() const { ::sigprocmask(SIG_SETMASK, &former_mask_, nullptr); }

 private:
  sigset_t former_mask_ = {};
  std::array<struct sigaction, kHandedOn.size()> former_ = {};
  struct sigaction former_of_children_ = {};
};

/// The child, from its beginning to its end.
[[noreturn]] void beRank(int64_t rank, SharedRanks& shared, const LaunchOptions& options,
                         const RankBody& body, LastWords& words, pid_t launcher,
                         const SignalsHandedOn& signals) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != launcher) ::_exit(1);  // which has ended before that was said
  for (int signal : kHandedOn) ::signal(signal, SIG_DFL);
  signals.release();
  if (rank > 0) beQuiet();
  SharedCommunicator communicator(shared, rank, options.limit);
  Result<int> outcome = callBody(body, communicator);
  if (!outcome.ok()) outcome.message().copy(words.text.data(), words.text.size() - 1);
  std::fflush(nullptr);
  ::_exit(outcome.ok() ? *outcome : 1);
}

std::string howItEnded(int status) {
  if (WIFSIGNALED(status))
    return "was ended by signal " + std::to_string(WTERMSIG(status)) + " (" + ::strsignal(WTERMSIG(status)) +
           ")";
  return "ended with status " + std::to_string(WEXITSTATUS(status));
}

class Watch {
 public:
  Watch(const LaunchOptions& options, SharedRanks& shared, const WordsOfRanks& words, std::vector<pid_t> pids)
      : options_(options), shared_(shared), words_(words), ranks_(pids.size()) {
    for (size_t rank = 0; rank < pids.size(); ++rank) ranks_[rank].pid = pids[rank];
  }

  int toTheEnd() {
    while (alive() > 0) {
      look();
      const Clock::time_point now = Clock::now();
      for (size_t rank = 0; rank < ranks_.size(); ++rank)
        if (ranks_[rank].stopped_at && now - *ranks_[rank].stopped_at > options_.patience)
          lose(rank, "is stopped");
      if (failed_at_ && now - *failed_at_ > options_.patience) killAll();
      std::this_thread::sleep_for(kLook);
    }
    sayWhy();
    return status();
  }

 private:
  struct Rank {
    pid_t pid = 0;
    bool has_ended = false;
    int status = 0;
    std::optional<Clock::time_point> stopped_at = {};
    bool is_culprit = false;  // it failed by itself
    std::string why = {};
  };

  size_t alive() const {
    return static_cast<size_t>(
        std::count_if(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return !rank.has_ended; }));
  }

  /// Takes what has happened to the ranks since the last look.
  void look() {
    for (size_t rank = 0; rank < ranks_.size(); ++rank) {
      int status = 0;
      if (ranks_[rank].has_ended ||
          ::waitpid(ranks_[rank].pid, &status, WNOHANG | WUNTRACED | WCONTINUED) <= 0)
        continue;
      if (WIFSTOPPED(status))
        ranks_[rank].stopped_at = Clock::now();
      else if (WIFCONTINUED(status))
        ranks_[rank].stopped_at.reset();
      else
        end(rank, status);
    }
  }

  void end(size_t rank, int status) {
    Rank& ended = ranks_[rank];
    ended.has_ended = true;
    ended.status = status;
    ended.stopped_at.reset();
    children[rank] = 0;
    if (!WIFEXITED(status) || WEXITSTATUS(status) == 1)
      lose(rank, howItEnded(status));
    else
      shared_.lose(static_cast<int64_t>(rank), howItEnded(status), SharedRanks::Loss::in_order);
  }

  void lose(size_t rank, const std::string& why) {
    // Those that end after the first give up because of it, or for the same reason.
    if (!failed_at_) {
      ranks_[rank].is_culprit = true;
      failed_at_ = Clock::now();
    }
    if (ranks_[rank].why.empty()) ranks_[rank].why = why;
    shared_.lose(static_cast<int64_t>(rank), why);
    ranks_[rank].stopped_at.reset();
  }

  void killAll() {
    for (const Rank& rank : ranks_)
      if (!rank.has_ended) ::kill(rank.pid, SIGKILL);
  }

  /// One line for each thing that was said, that of who failed first before the others. Who says why it ended
  /// says it for those that waited for it.
  void sayWhy() const {
    if (!failed_at_) return;
    std::vector<std::string> said;
    auto say = [&](const std::string& text) {
      if (text.empty() || std::find(said.begin(), said.end(), text) != said.end()) return;
      std::fprintf(stderr, "error: %s\n", text.c_str());
      said.push_back(text);
    };
    std::string explained, reason;
    for (size_t rank = 0; rank < ranks_.size(); ++rank) {
      if (!ranks_[rank].is_culprit) continue;
      const std::string name = "rank " + std::to_string(rank), ended = name + " " + ranks_[rank].why;
      reason = wordsOf(rank);
      if (!reason.empty()) explained = ", but " + ended;
      const bool is_alone = rank > 0 && !explained.empty() && hasAnyWaited(explained);
      say(reason.empty() ? ended : is_alone ? name + ": " + reason : reason);
    }
    for (size_t rank = 0; rank < ranks_.size(); ++rank) {
      const std::string words = wordsOf(rank);
      if (words != reason && (explained.empty() || !words.ends_with(explained))) say(words);
    }
  }

  std::string wordsOf(size_t rank) const { return words_[rank].text.data(); }

  bool hasAnyWaited(const std::string& explained) const {
    for (size_t rank = 0; rank < ranks_.size(); ++rank)
      if (wordsOf(rank).ends_with(explained)) return true;
    return false;
  }

  int status() const {
    for (const Rank& rank : ranks_)
      if (WIFEXITED(rank.status) && WEXITSTATUS(rank.status) > 1)
        return failed_at_ ? 1 : WEXITSTATUS(rank.status);
    return failed_at_ ? 1 : 0;
  }

  const LaunchOptions& options_;
  SharedRanks& shared_;
  const WordsOfRanks& words_;
  std::vector<Rank> ranks_;
  std::optional<Clock::time_point> failed_at_;
};

}  // namespace

int beQuiet() {
  const int errors = ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (errors >= 0) sendLastLineTo(errors);
  const int nothing = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nothing < 0) return errors;
  ::dup2(nothing, STDOUT_FILENO);
  ::dup2(nothing, STDERR_FILENO);
  ::close(nothing);
  return errors;
}

Result<int> callBody(const RankBody& body, Communicator& ranks) {
  try {
    return body(ranks);
  } catch (...) {
    return Status::error(describeException().data());
  }
}

void letAnotherSpeak() { std::this_thread::sleep_for(std::chrono::seconds(5)); }

Result<int> launchRanks(const LaunchOptions& options, const RankBody& body) {
  GPUC_ASSIGN_OR_RETURN(SharedRanks shared, SharedRanks::create(options.ranks));
  GPUC_ASSIGN_OR_RETURN(WordsOfRanks words, WordsOfRanks::create(options.ranks));
  const SignalsHandedOn signals;
  std::vector<pid_t> pids;
  std::fflush(nullptr);  // or each child writes it again
  const pid_t launcher = ::getpid();
  for (int64_t rank = 0; rank < options.ranks; ++rank) {
    const pid_t pid = ::fork();
    if (pid == 0) beRank(rank, shared, options, body, words[static_cast<size_t>(rank)], launcher, signals);
    if (pid < 0) {
      for (pid_t started : pids) ::kill(started, SIGKILL);
      for (pid_t started : pids) ::waitpid(started, nullptr, 0);
      return errorf("cannot start rank %lld: %s", static_cast<long long>(rank), std::strerror(errno));
    }
    children[static_cast<size_t>(rank)] = pid;
    pids.push_back(pid);
  }
  signals.release();
  return Watch(options, shared, words, std::move(pids)).toTheEnd();
}

}  // namespace gpuc
