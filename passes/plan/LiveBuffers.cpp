//===- LiveBuffers.cpp - How many bytes are live at each time of a program ---===//

#include "passes/plan/LiveBuffers.h"

#include "runtime/plan/header.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace gpuc {

static int64_t endOf(const Lifetimes &lifetimes) {
  int64_t end = 0;
  for (const auto &[buffer, lifetime] : lifetimes)
    end = std::max(end, lifetime.upper);
  return end;
}

LiveBuffers::LiveBuffers(ModuleOp module, plan::ProgramOp program, const Lifetimes &lifetimes)
    : chains_(module, program, lifetimes), live_(endOf(lifetimes)) {
  for (auto [buffer, lifetime] : lifetimes) {
    auto [entry, isNew] = spans_.insert({chains_.leader(buffer), {lifetime.lower, lifetime.upper, 0}});
    Span &span = entry->second;
    span.lower = std::min(span.lower, lifetime.lower);
    span.upper = std::max(span.upper, lifetime.upper);
    const int64_t bytes = llvm::alignTo(ir::sizeInBytes(buffer.getType()), kBufferAlignment);
    span.bytes = std::max(span.bytes, bytes);
  }
  for (const auto &[leader, span] : spans_)
    live_.add(span.bytes, span.lower, span.upper);
  peak_ = live_.peak();
}

void LiveBuffers::count(plan::AllocOp buffer, int64_t times) {
  const Span &span = spans_.find(chains_.leader(buffer))->second;
  live_.add(times * span.bytes, span.lower, span.upper);
}

LiveBuffers::FormerEnds LiveBuffers::lengthen(ArrayRef<plan::CommandOpInterface> commands, int64_t to) {
  FormerEnds former;
  auto lengthen = [&](Value value) {
    auto buffer = dyn_cast<plan::AllocOp>(*plan::bufferOf(value));
    if (!buffer)
      return;
    Span &span = spans_.find(chains_.leader(buffer))->second;
    if (span.upper > to)
      return;
    former.emplace_back(&span, span.upper);
    live_.add(span.bytes, span.upper, to + 1);
    span.upper = to + 1;
  };
  for (plan::CommandOpInterface command : commands)
    for (Value value : llvm::concat<Value>(command.getReads(), command.getWrites()))
      lengthen(value);
  return former;
}

void LiveBuffers::shorten(const FormerEnds &former) {
  for (auto [span, upper] : llvm::reverse(former)) {
    live_.add(-span->bytes, upper, span->upper);
    span->upper = upper;
  }
}

bool LiveBuffers::extend(ArrayRef<plan::CommandOpInterface> commands, int64_t from, int64_t to) {
  const FormerEnds former = lengthen(commands, to);
  if (live_.most(from, to + 1) <= peak_)
    return true;
  shorten(former);
  return false;
}

bool LiveBuffers::canExtend(ArrayRef<plan::CommandOpInterface> commands, int64_t from, int64_t to) {
  const FormerEnds former = lengthen(commands, to);
  const bool fits = live_.most(from, to + 1) <= peak_;
  shorten(former);
  return fits;
}

} // namespace gpuc
