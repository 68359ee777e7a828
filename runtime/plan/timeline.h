// When the commands of a program run, and which buffers hold something meanwhile.
#pragma once

#include <optional>
#include <vector>

#include "runtime/plan/access.h"
#include "runtime/plan/operands.h"

namespace gpuc {

/// From the first command to the last during which a buffer holds something, counted from 0; both belong to
/// it.
struct Span {
  uint32_t first;
  uint32_t last;
};

/// The commands of one program that touch memory, in an order that its events allow, each loop once. What
/// streams do side by side stands in this order one behind the other.
class Timeline {
 public:
  struct Step {
    const fb::Command* command;
    uint32_t stream;
  };

  /// A record or a wait: behind so many of the steps, on which stream.
  struct Signal {
    const fb::Command* command;
    uint32_t stream;
    uint32_t steps;
  };

  Timeline(const fb::Plan& plan, const fb::Program& program);

  const std::vector<Step>& steps() const { return steps_; }
  const std::vector<Signal>& signals() const { return signals_; }
  uint32_t length() const { return static_cast<uint32_t>(steps_.size()); }
  /// Of each buffer of the plan; none of those that hold nothing in this program. Variables, constants and
  /// the program's inputs do from start to end, outputs to the end. What goes into a loop or comes out of it
  /// is there for all of the loop; so is what iterations have a place each of, or hand on: all that they do
  /// not begin by writing.
  const std::vector<std::optional<Span>>& spans() const { return spans_; }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  struct Loop {
    uint32_t parent;  // kNone: of the program itself, the first
    bool is_parallel;
    Span span;
  };
  /// What is known of a buffer so far: the loops of its first and its last command, and the innermost around
  /// all of them.
  struct Touched {
    uint32_t scope = kNone;
    uint32_t first_loop = 0, last_loop = 0;
    bool is_overwritten = false;  // by the first command
    Span span{0, 0};
  };
  struct Placed {
    const fb::Command* command;
    uint32_t loop;
  };

  void flatten(const Commands* commands, uint32_t loop, std::vector<Placed>& list);
  void merge(const std::vector<std::vector<Placed>>& streams);
  bool ready(const fb::Command& command) const;
  void execute(const Placed& placed, uint32_t stream);
  void touch(const fb::Operand& operand, uint32_t loop, bool is_overwritten);
  uint32_t depthOf(uint32_t loop) const;
  uint32_t scopeOf(const fb::Operand& operand, uint32_t loop) const;
  uint32_t around(uint32_t loop, uint32_t other) const;
  uint32_t below(uint32_t scope, uint32_t loop) const;
  Span spanOf(const Touched& touched) const;
  void finish(const fb::Program& program);

  const fb::Plan& plan_;

  std::vector<bool> recorded_;  // events
  std::vector<Loop> loops_;
  std::vector<Touched> touched_;
  std::vector<Step> steps_;
  std::vector<Signal> signals_;
  std::vector<std::optional<Span>> spans_;
};

}  // namespace gpuc
