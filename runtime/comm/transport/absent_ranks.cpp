#include "runtime/comm/transport/absent_ranks.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string_view>

namespace gpuc {
namespace {

constexpr std::chrono::milliseconds kLook{1000};
/// A rank that has been there has ended if it is not there any more, twice in turn: between fork() and exec()
/// a process has its parent's environment. One that has never been there may not have been started yet.
constexpr std::chrono::milliseconds kGone{1000}, kNeverThere{5000};

constexpr std::string_view kWords =
    " has ended, and has not come to the others: all ranks have to train (gpuc-train, or Python's "
    "gpuc.compile with data_parallel=True)";

/// What ranks of one job have alike, where their launcher sets it.
constexpr std::array<const char*, 6> kOfJob = {"PMIX_NAMESPACE", "TORCHELASTIC_RUN_ID", "MASTER_ADDR",
                                               "MASTER_PORT",    "SLURM_JOB_ID",        "SLURM_STEP_ID"};

std::string read(const std::string& path) {
  std::string text;
  std::FILE* file = std::fopen(path.c_str(), "re");
  if (!file) return text;
  std::array<char, 4096> part = {};
  while (const size_t count = std::fread(part.data(), 1, part.size(), file)) text.append(part.data(), count);
  std::fclose(file);
  return text;
}

using Environment = std::vector<std::string>;  // NAME=VALUE

/// With which a process was started; empty of one that has ended, or that another user has.
Environment environmentOf(const std::string& process) {
  Environment entries;
  const std::string text = read("/proc/" + process + "/environ");
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\0', begin), text.size());
    entries.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return entries;
}

std::optional<std::string> valueOf(const Environment& entries, const std::string& name) {
  for (const std::string& entry : entries)
    if (entry.starts_with(name + "=")) return entry.substr(name.size() + 1);
  return std::nullopt;
}

/// 0: there is none that can be seen.
int64_t parentOf(int64_t process) {
  const std::string text = read("/proc/" + std::to_string(process) + "/stat");
  const size_t name_end = text.rfind(") ");
  return name_end == std::string::npos
             ? 0
             : std::atoll(text.c_str() + name_end + std::string_view(") S ").size());
}

/// The nearest of the processes that have led to this one which is not the rank's own: what it has started
/// can be seen, too. 0: there is none.
int64_t findStarter(const std::string& variable) {
  int64_t process = parentOf(::getpid());
  while (process > 0 && valueOf(environmentOf(std::to_string(process)), variable))
    process = parentOf(process);
  return process;
}

bool descendsFrom(int64_t process, int64_t ancestor) {
  while (process > 0 && process != ancestor) process = parentOf(process);
  return process == ancestor;
}

bool isOfOneJob(const Environment& one, const Environment& other) {
  return std::all_of(kOfJob.begin(), kOfJob.end(),
                     [&](const char* name) { return valueOf(one, name) == valueOf(other, name); });
}

/// Whether a process that runs does not show its environment: it keeps others from reading it, or has written
/// its title over it, as Python's setproctitle does.
bool isHidden(const std::string& process, const Environment& entries) {
  const std::string path = "/proc/" + process + "/environ";
  struct stat facts = {};
  if (entries.empty())
    return ::stat(path.c_str(), &facts) == 0 && facts.st_uid == ::geteuid() &&
           ::access(path.c_str(), R_OK) != 0;
  return std::none_of(entries.begin(), entries.end(),
                      [](const std::string& entry) { return entry.find('=') != std::string::npos; });
}

/// By rank; none if one of the processes that `starter` has started may be of any rank.
std::optional<std::vector<bool>> findAlive(const RanksHere& here, const Environment& own, int64_t starter) {
  std::vector<bool> alive(static_cast<size_t>(here.ranks));
  const std::unique_ptr<DIR, int (*)(DIR*)> processes(::opendir("/proc"), ::closedir);
  if (!processes) return std::nullopt;
  while (const dirent* entry = ::readdir(processes.get())) {
    const std::string process = static_cast<const char*>(entry->d_name);
    if (process.find_first_not_of("0123456789") != std::string::npos) continue;
    const Environment entries = environmentOf(process);
    if (isHidden(process, entries) && descendsFrom(std::atoll(process.c_str()), starter)) return std::nullopt;
    const std::optional<std::string> number = valueOf(entries, here.variable);
    const int64_t rank = number ? std::atoll(number->c_str()) : -1;
    if (rank >= 0 && rank < here.ranks && isOfOneJob(entries, own)) alive[static_cast<size_t>(rank)] = true;
  }
  return alive;
}

}  // namespace

AbsentRanks::AbsentRanks(RanksHere here)
    : here_(std::move(here)), own_(environmentOf("self")), looked_at_(Clock::now()) {
  if (here_.ranks <= 1 || valueOf(own_, here_.variable) != std::to_string(here_.rank)) return;
  starter_ = findStarter(here_.variable);
  if (starter_ == 0) return;
  seen_.resize(static_cast<size_t>(here_.ranks), {.ever = false, .absent_since = looked_at_});
}

std::optional<int64_t> AbsentRanks::look() {
  const Clock::time_point now = Clock::now();
  if (seen_.empty() || now - looked_at_ < kLook) return std::nullopt;
  looked_at_ = now;
  const std::optional<std::vector<bool>> alive = findAlive(here_, own_, starter_);
  bool is_sure = false;
  for (size_t rank = 0; rank < seen_.size(); ++rank) {
    Seen& seen = seen_[rank];
    if (!alive || (*alive)[rank]) seen = {.ever = seen.ever || alive.has_value(), .absent_since = now};
    is_sure |= now - seen.absent_since >= (seen.ever ? kGone : kNeverThere);
  }
  if (!is_sure) return std::nullopt;
  // Those that have missed it end, too: of two that were gone at one look rank 0 may be one that has spoken.
  const auto first = std::min_element(seen_.rbegin(), seen_.rend(), [](const Seen& one, const Seen& other) {
    return one.absent_since < other.absent_since;
  });
  return seen_.rend() - first - 1;
}

std::string AbsentRanks::wordsOf(int64_t rank) {
  return "rank " + std::to_string(rank) + std::string(kWords);
}

std::optional<int64_t> AbsentRanks::rankOf(const std::string& words) {
  if (!words.starts_with("rank ") || !words.ends_with(kWords)) return std::nullopt;
  return std::atoll(words.c_str() + std::string_view("rank ").size());
}

}  // namespace gpuc
