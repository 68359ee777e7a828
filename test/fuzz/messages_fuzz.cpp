// What ranks send to one another: the input says how the bytes that honest ones send are changed, headers
// above all. The rank that hears them ends in time, with what it wanted or with one line, and asks for no
// memory.
#include <array>
#include <cstring>
#include <thread>

#include "runtime/comm/mesh.h"
#include "runtime/comm/transport/tcp.h"
#include "runtime/tooling/allocation_hook.h"
#include "test/fuzz/fuzz_check.h"

namespace gpuc {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr int64_t kRanks = 3;
constexpr milliseconds kLimit{50}, kPatience{50};

/// A line's two ends.
std::array<Socket, 2> makeLine() {
  std::array<int, 2> ends = {};
  require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0, "there are sockets");
  return {Socket(ends[0]), Socket(ends[1])};
}

/// All that a rank asks for, with messages that are short, long, of several chunks and packed.
Status exchange(MeshCommunicator& ranks) {
  GPUC_RETURN_IF_ERROR(ranks.meet());
  std::array<float, 1500> values = {}, other = {};
  auto* part = reinterpret_cast<std::byte*>(values.data());
  auto* result = reinterpret_cast<std::byte*>(other.data());
  for (size_t elements : {size_t{1}, size_t{12}, values.size()})
    GPUC_RETURN_IF_ERROR(ranks.allReduce(DataType::f32, elements, part, result));
  const std::array<uint64_t, 2> pieces = {90, 6};
  const Shares shares = *Shares::of(pieces, kRanks, sizeof(float));
  const std::array<void*, 2> wholes = {values.data(), values.data() + pieces[0]};
  const std::array<void*, 2> own = {other.data(), other.data() + pieces[0] / kRanks};
  const std::span<const void* const> read_wholes(wholes.data(), 2), read_own(own.data(), 2);
  GPUC_RETURN_IF_ERROR(ranks.reduceScatter(DataType::f32, shares, read_wholes, own));
  GPUC_RETURN_IF_ERROR(ranks.allGather(DataType::f32, shares, read_own, wholes));
  std::array<std::byte, 3 * 40> all = {};
  GPUC_RETURN_IF_ERROR(ranks.gather(std::span(all).first(40), all));
  return ranks.broadcast(std::as_writable_bytes(std::span(values)), /*root=*/1);
}

/// Messages, as they go over a line.
using Messages = std::vector<std::string>;

constexpr size_t kHeader = 8, kLengthAt = 4;

Messages split(const std::string& bytes) {
  Messages messages;
  for (size_t at = 0; at < bytes.size();) {
    uint32_t length = 0;
    std::memcpy(&length, bytes.data() + at + kLengthAt, sizeof(length));
    messages.push_back(bytes.substr(at, kHeader + length));
    at += kHeader + length;
  }
  return messages;
}

/// Hands on what comes from one rank to another, and notes it.
void listen(const Socket& from, const Socket& to, std::string& heard) {
  std::array<char, 4096> part = {};
  for (ssize_t count = 0; (count = ::recv(from.number(), part.data(), part.size(), 0)) > 0;) {
    heard.append(part.data(), static_cast<size_t>(count));
    require(::send(to.number(), part.data(), static_cast<size_t>(count), MSG_NOSIGNAL) == count,
            "it goes on");
  }
  ::shutdown(to.number(), SHUT_WR);
}

/// What the second of honest ranks says to the first. Afterwards it fails, and says why.
Messages recordHonest() {
  std::array<std::array<Socket, kRanks>, kRanks> lines;
  for (size_t one = 0; one < kRanks; ++one)
    for (size_t other = one + 1; other < kRanks; ++other) {
      std::array<Socket, 2> line = makeLine();
      lines[one][other] = std::move(line[0]);
      lines[other][one] = std::move(line[1]);
    }
  // Between these two stands one that listens.
  std::array<Socket, 2> tapped = makeLine();
  const Socket at_first = std::exchange(lines[1][0], std::move(tapped[1]));
  std::string heard;
  std::vector<std::thread> threads;
  threads.emplace_back([&] { listen(tapped[0], at_first, heard); });
  threads.emplace_back([&] {
    std::string ignored;
    listen(at_first, tapped[0], ignored);
  });
  for (int64_t rank = 0; rank < kRanks; ++rank)
    threads.emplace_back([&, rank] {
      auto& own = lines[static_cast<size_t>(rank)];
      const auto transport =
          speakOver({std::make_move_iterator(own.begin()), std::make_move_iterator(own.end())}, rank);
      MeshCommunicator ranks(*transport,
                             {.limit = std::chrono::seconds(20), .patience = std::chrono::seconds(5)});
      require(exchange(ranks).ok(), "honest ranks understand one another");
      ranks.giveUp("no such file");
      ranks.leave();
    });
  for (std::thread& thread : threads) thread.join();
  return split(heard);
}

const Messages& honest() {
  static const Messages messages = recordHonest();
  return messages;
}

/// The input as a list of choices; zeros once it is used up.
class Choices {
 public:
  Choices(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  bool areLeft() const { return at_ < size_; }
  uint8_t byte() { return areLeft() ? data_[at_++] : uint8_t{0}; }
  size_t below(size_t limit) {
    return (static_cast<size_t>(byte()) << 8 | byte()) % std::max<size_t>(limit, 1);
  }
  uint32_t number() {
    constexpr std::array<uint32_t, 12> kEdges = {
        0, 1, 4, 36, 40, 1 << 14, 0x7ffd, 0x7ffe, 0x7ffffff, 0x7fffffff, 0x80000000, 0xffffffff};
    const size_t which = below(kEdges.size() + 1);
    return which < kEdges.size() ? kEdges[which] : static_cast<uint32_t>(below(1 << 16));
  }

 private:
  const uint8_t* data_;
  size_t size_, at_ = 0;
};

void write(std::string& message, size_t at, uint32_t number) { std::memcpy(message.data() + at, &number, 4); }

void changeOnce(Messages& messages, Choices& choices) {
  const size_t which = choices.below(messages.size());
  std::string& message = messages[which];
  const auto place = messages.begin() + static_cast<std::ptrdiff_t>(which);
  const Messages& whole = honest();
  switch (choices.byte() % 8) {
    case 0:
      if (message.size() >= kHeader) write(message, 0, choices.number());
      break;
    case 1:
      if (message.size() >= kHeader) write(message, kLengthAt, choices.number());
      break;
    case 2:  // shorter, or longer, than the others, and sound
      message.resize(kHeader + choices.number() % (1 << 14));
      write(message, kLengthAt, static_cast<uint32_t>(message.size() - kHeader));
      break;
    case 3:
      messages.erase(place);
      break;
    case 4:
      messages.insert(place, whole[choices.below(whole.size())]);
      break;
    case 5:
      message.resize(choices.below(message.size()));
      break;
    case 6:
      if (!message.empty()) message[choices.below(message.size())] = static_cast<char>(choices.byte());
      break;
    case 7:
      messages.erase(place, messages.end());
      break;
  }
  if (messages.empty()) messages.emplace_back();
}

std::string join(const Messages& messages) {
  std::string bytes;
  for (const std::string& message : messages) bytes += message;
  return bytes;
}

void requirePrintableLine(const std::string& text) {
  for (char byte : text) require(static_cast<unsigned char>(byte) >= ' ', "an error is one line");
}

/// The first of three ranks, to whom both others say this, and then nothing more; or they are gone.
void hear(const std::string& bytes, bool is_honest, bool are_gone) {
  std::vector<Socket> lines(kRanks), others;
  for (size_t other = 1; other < kRanks; ++other) {
    std::array<Socket, 2> line = makeLine();
    // What does not fit into the line is as if it had never been sent.
    (void)::send(line[1].number(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (are_gone) ::shutdown(line[1].number(), SHUT_WR);
    lines[other] = std::move(line[0]);
    others.push_back(std::move(line[1]));
  }
  const auto transport = speakOver(std::move(lines), 0);
  MeshCommunicator ranks(*transport, {.limit = kLimit, .patience = kPatience});
  resetLargestAllocation();
  const Clock::time_point start = Clock::now();
  const Status status = exchange(ranks);
  require(status.ok() || !is_honest, "honest ranks are understood");
  if (!status.ok()) requirePrintableLine(status.message());
  ranks.giveUp(status.ok() ? "no such file" : status.message());
  ranks.leave();
  require(Clock::now() - start < std::chrono::seconds(20), "it ends in time");
  require(largestAllocation() < 1 << 16, "no number of a message asks for memory");
}

}  // namespace
}  // namespace gpuc

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  gpuc::Choices choices(data, size);
  gpuc::Messages messages = gpuc::honest();
  const bool are_gone = choices.byte() < 240;
  const bool is_honest = !choices.areLeft();
  while (choices.areLeft()) gpuc::changeOnce(messages, choices);
  gpuc::hear(gpuc::join(messages), is_honest, are_gone);
  return 0;
}
