#include "runtime/plan/lifetimes.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "runtime/plan/live_bytes.h"
#include "runtime/plan/operands.h"

namespace gpuc {
namespace {

/// Walks through the main stream and keeps, for each buffer, the innermost list that all its users stand in.
class LifetimeFinder {
 public:
  LifetimeFinder(const fb::Plan& plan, const Commands* main) : plan_(plan) {
    bodies_.push_back({nullptr, 0, 0});
    walk(main, 0);
  }

  uint32_t positions() const { return position_; }

  /// Of a buffer that nothing but the main stream needs; with `to_end` something else reads it later.
  BufferLifetime lifetimeOf(uint32_t buffer, bool to_end) const {
    Users users = users_.at(buffer);
    while (users.body != 0 && (to_end || !users.overwritten)) lift(users);
    const uint32_t lower = positions_.at(users.first).first;
    if (to_end) return {buffer, users.first, nullptr, lower, position_ + 1};
    return {buffer, users.first, users.last, lower, positions_.at(users.last).second};
  }

  std::vector<uint32_t> touched() const {
    std::vector<uint32_t> buffers;
    buffers.reserve(users_.size());
    for (const auto& [buffer, users] : users_) buffers.push_back(buffer);
    return buffers;
  }

 private:
  /// A list of commands: the main stream, which is the first, or those of a loop in another list.
  struct Body {
    const fb::Command* loop;
    size_t around;
    uint32_t depth;
  };
  /// The first and the last user of a buffer in the body that holds them all.
  struct Users {
    size_t body;
    const fb::Command* first;
    const fb::Command* last;
    bool overwritten;  // by the first, which is no loop
  };
  struct Touch {
    bool read = false, whole = false;
  };

  void walk(const Commands* commands, size_t body) {
    for (const fb::Command* command : each(commands)) {
      const uint32_t begin = position_;
      if (const std::optional<CommandLoop> loop = loopOf(*command)) {
        bodies_.push_back({command, body, bodies_[body].depth + 1});
        walk(loop->commands, bodies_.size() - 1);
      }
      touchOperands(*command, body);
      position_ = std::max(position_, begin + 1);
      positions_[command] = {begin, position_};
    }
  }

  void touchOperands(const fb::Command& command, size_t body) {
    std::map<uint32_t, Touch> touches;
    for (const auto& [operand, use] : operandsOf(command)) {
      if (!operand) continue;
      Touch& touch = touches[operand->buffer()];
      touch.read |= isRead(use.role);
      touch.whole |= isWritten(use.role) && isWhole(plan_, *operand);
    }
    for (const auto& [buffer, touch] : touches)
      addUser(buffer, {body, &command, &command, touch.whole && !touch.read});
  }

  void addUser(uint32_t buffer, Users added) {
    auto [found, is_new] = users_.try_emplace(buffer, added);
    Users& users = found->second;
    while (users.body != added.body)
      lift(bodies_[users.body].depth > bodies_[added.body].depth ? users : added);
    users.last = added.last;
  }

  /// The loop of their body stands for the users.
  void lift(Users& users) const {
    const Body& body = bodies_[users.body];
    users = {body.around, body.loop, body.loop, false};
  }

  const fb::Plan& plan_;
  std::vector<Body> bodies_;
  std::map<uint32_t, Users> users_;
  std::unordered_map<const fb::Command*, std::pair<uint32_t, uint32_t>> positions_;
  uint32_t position_ = 0;
};

/// Adds the buffers that the commands read to one set and those that they write to the other.
void collectTouched(const Commands* commands, std::set<uint32_t>& read, std::set<uint32_t>& written) {
  for (const fb::Command* command : each(commands)) {
    if (const std::optional<CommandLoop> loop = loopOf(*command))
      collectTouched(loop->commands, read, written);
    for (const auto& [operand, use] : operandsOf(*command))
      if (operand) (isWritten(use.role) ? written : read).insert(operand->buffer());
  }
}

}  // namespace

ByteRange bytesOf(const fb::Plan& plan, uint32_t index) {
  const fb::Buffer& buffer = *plan.buffers()->Get(index);
  const auto begin = static_cast<int64_t>(buffer.offset());
  return {begin, begin + static_cast<int64_t>(extentOf(plan, buffer))};
}

ProgramLifetimes lifetimesOf(const fb::Plan& plan, const fb::Program& program) {
  std::set<uint32_t> read_to_end, written_elsewhere;
  for (uint32_t s = 1; s < countOf(program.streams()); ++s)
    collectTouched(program.streams()->Get(s)->commands(), read_to_end, written_elsewhere);
  std::set<uint32_t> lasting = written_elsewhere;
  for (const fb::Variable* variable : each(plan.variables())) lasting.insert(variable->buffer());
  for (const fb::Constant* constant : each(plan.constants())) lasting.insert(constant->buffer());
  for (const fb::Input* input : each(program.inputs())) lasting.insert(input->buffer());
  for (const fb::Output* output : each(program.outputs())) read_to_end.insert(output->buffer());

  const bool has_main = countOf(program.streams()) > 0;
  const LifetimeFinder finder(plan, has_main ? program.streams()->Get(0)->commands() : nullptr);
  ProgramLifetimes result;
  result.positions = finder.positions();
  const std::vector<uint32_t> touched = finder.touched();
  for (uint32_t buffer : touched)
    if (!lasting.count(buffer))
      result.lifetimes.push_back(finder.lifetimeOf(buffer, read_to_end.count(buffer) > 0));
  result.lasting.assign(lasting.begin(), lasting.end());
  result.written_elsewhere.assign(written_elsewhere.begin(), written_elsewhere.end());
  return result;
}

}  // namespace gpuc
