#include "runtime/comm/life_watch.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string_view>

namespace gpuc {
namespace {

/// The first bytes of a small file; empty if it cannot be read. Nothing is allocated.
std::string_view readStart(const char* path, std::span<char> buffer) {
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  const ssize_t length = ::read(file, buffer.data(), buffer.size());
  ::close(file);
  return {buffer.data(), length > 0 ? static_cast<size_t>(length) : 0};
}

/// By the letter behind the name, which is in parentheses and may hold any.
bool isStopped(int64_t process) {
  std::array<char, 64> path = {};
  std::array<char, 256> buffer = {};
  std::snprintf(path.data(), path.size(), "/proc/%lld/stat", static_cast<long long>(process));
  const std::string_view text = readStart(path.data(), buffer);
  const size_t name_end = text.rfind(')');
  return name_end != std::string_view::npos && name_end + 2 < text.size() && text[name_end + 2] == 'T';
}

}  // namespace

/// The kernel that runs, and the space of process numbers in it.
Life Life::ofThisProcess() {
  std::array<char, 64> buffer = {};
  Life life;
  life.process = ::getpid();
  life.machine = std::hash<std::string_view>{}(readStart("/proc/sys/kernel/random/boot_id", buffer));
  struct stat space = {};
  if (::stat("/proc/self/ns/pid", &space) == 0) life.machine ^= static_cast<uint64_t>(space.st_ino) << 20;
  return life;
}

LifeWatch::LifeWatch(std::span<const Life> lives, int64_t rank, std::chrono::milliseconds patience)
    : patience_(patience) {
  const Life& own = lives[static_cast<size_t>(rank)];
  for (size_t other = 0; other < lives.size(); ++other) {
    if (static_cast<int64_t>(other) == rank || lives[other].machine != own.machine) continue;
    const auto handle = static_cast<int>(::syscall(SYS_pidfd_open, lives[other].process, 0));
    if (handle < 0 && errno != ESRCH) continue;  // a kernel before 5.3, or no descriptor left: not watched
    watched_.push_back({.rank = static_cast<int64_t>(other), .process = lives[other].process});
    handles_.push_back({.fd = handle, .events = POLLIN, .revents = 0});
  }
}

LifeWatch::~LifeWatch() {
  for (const pollfd& handle : handles_)
    if (handle.fd >= 0) ::close(handle.fd);
}

std::optional<LifeWatch::Loss> LifeWatch::lookForEnded() {
  ::poll(handles_.data(), handles_.size(), 0);
  for (size_t i = 0; i < watched_.size(); ++i) {
    const bool has_ended = handles_[i].fd < 0 || handles_[i].revents != 0;
    if (!has_ended || watched_[i].is_named) continue;
    watched_[i].is_named = true;
    return Loss{watched_[i].rank, "has died"};
  }
  return std::nullopt;
}

std::optional<LifeWatch::Loss> LifeWatch::look() {
  if (std::optional<Loss> ended = lookForEnded()) return ended;
  const Clock::time_point now = Clock::now();
  for (Watched& watched : watched_) {
    if (watched.is_named) continue;
    if (!isStopped(watched.process))
      watched.stopped_at.reset();
    else if (!watched.stopped_at)
      watched.stopped_at = now;
    watched.is_named = watched.stopped_at && now - *watched.stopped_at > patience_;
    if (watched.is_named) return Loss{watched.rank, "is stopped"};
  }
  return std::nullopt;
}

}  // namespace gpuc
