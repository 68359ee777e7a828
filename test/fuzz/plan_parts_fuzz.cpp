// Plans as nobody compiles them, sealed as if somebody had: the input seeds a generator that grows some of a
// plan's lists and lets any number of its parts lead to one and the same table, vector or string, or to the
// middle of another one. Whatever reads such a file must go through no more, and hold no more, than is in
// proportion to its bytes. (Mutated bytes are plan_fuzz.cpp's: they seldom get so far.)
#include <cstring>
#include <map>
#include <random>

#include "runtime/gpuc.h"
#include "runtime/plan/access.h"
#include "runtime/plan/header.h"
#include "runtime/plan/seal.h"
#include "runtime/report/inspect.h"
#include "runtime/tooling/allocation_hook.h"
#include "test/fuzz/fuzz_check.h"

namespace gpuc {
namespace {

template <typename T>
using Ref = flatbuffers::Offset<T>;
template <typename T>
using List = Ref<flatbuffers::Vector<Ref<T>>>;
using Text = flatbuffers::String;

class Generator {
 public:
  explicit Generator(std::string_view input) {
    std::seed_seq seeds(input.begin(), input.end());
    random_.seed(seeds);
    is_valid_ = below(2) == 0;
    // Of what may be shared by a plan that is valid otherwise: text, operands, and lists of commands and
    // names.
    const uint64_t harmless = 1 << strings | 1 << operands | lists(bodies) | lists(events) | lists(libraries);
    shared_kinds_ = below(2) ? 0 : random_() & (is_valid_ ? harmless : UINT64_MAX);
    // Few lists are long at once: what they come to is a product.
    grown_kinds_ = random_() & random_();
    longest_ = uint64_t{1} << below(13);
    longest_name_ = below(4) == 0 ? 4096 : 8;
    slots_ = is_valid_ ? oneOf<uint32_t>({1, 2, 64}) : oneOf<uint32_t>({1, 1, 1, 2, 64, 65, UINT32_MAX});
  }

  std::string file() {
    const Ref<fb::Plan> plan = makePlan();
    builder_.Finish(plan, fb::PlanIdentifier());
    std::string payload(reinterpret_cast<const char*>(builder_.GetBufferPointer()), builder_.GetSize());
    for (uint64_t i = below(is_valid_ ? 16 : 2) == 0 ? below(8) : 0; i > 0; --i) bend(payload);
    return sealPlan(payload);
  }

 private:
  enum Kind {
    strings,
    operands,
    commands,
    bodies,
    streams,
    ports,
    checks,
    events,
    libraries,
    variables,
    kernels,
    programs
  };

  /// The bit of lists of this kind, which are shared as a whole.
  static uint64_t lists(Kind kind) { return uint64_t{1} << (kind + 16); }

  uint64_t below(uint64_t limit) { return random_() % limit; }
  template <typename T>
  T oneOf(std::initializer_list<T> values) {
    return values.begin()[below(values.size())];
  }

  /// A part that was made before, where this kind is shared, or a new one.
  template <typename T, typename Make>
  Ref<T> part(Kind kind, Make make) {
    std::vector<flatbuffers::uoffset_t>& made = made_[kind];
    if ((shared_kinds_ >> kind & 1) && !made.empty() && below(16) != 0)
      return Ref<T>(made[below(made.size())]);
    const Ref<T> fresh = make();
    made.push_back(fresh.o);
    return fresh;
  }

  /// A vector of parts, which may itself be one that was made before.
  template <typename T, typename Make>
  List<T> list(Kind kind, uint64_t few, Make make) {
    auto fresh = [&] {
      std::vector<Ref<T>> elements;
      const bool is_long = grown_kinds_ >> kind & 1;
      uint64_t most = is_long ? 1 + below(longest_) : below(few + 1);
      if (is_valid_ && kind == streams) most = std::min<uint64_t>(most, 64);
      if (is_valid_ && (kind == ports || kind == variables)) most = std::min(most, buffers_);
      for (uint64_t i = most; i > 0 && builder_.GetSize() < kMost; --i) elements.push_back(make());
      return builder_.CreateVector(elements);
    };
    std::vector<flatbuffers::uoffset_t>& made = lists_[kind];
    if ((shared_kinds_ & lists(kind)) && !made.empty() && below(8) != 0)
      return List<T>(made[below(made.size())]);
    const List<T> created = fresh();
    made.push_back(created.o);
    return created;
  }

  Ref<Text> name() {
    std::string text = "n" + std::to_string(++names_);
    text.resize(std::max(text.size(), size_t{below(longest_name_) + 1}), 'x');
    return builder_.CreateString(text);
  }
  List<Text> names(uint64_t count) {
    std::vector<Ref<Text>> texts;
    for (; count > 0; --count) texts.push_back(name());
    return builder_.CreateVector(texts);
  }
  Ref<Text> sharedName() {
    return part<Text>(strings, [&] { return name(); });
  }

  Ref<fb::Operand> operand() {
    return part<fb::Operand>(operands, [&] {
      std::vector<int64_t> steps(!is_valid_ && below(8) == 0 ? below(4) : 0);
      for (int64_t& step : steps) step = oneOf<int64_t>({0, 0, 8, -8, INT64_MIN});
      const auto moves = steps.empty() ? 0 : builder_.CreateVector(steps);
      return fb::CreateOperand(builder_, static_cast<uint32_t>(below(buffers_)), below(2) * 16, kOperandBytes,
                               moves);
    });
  }

  Ref<fb::Command> command(int depth) {
    return part<fb::Command>(commands, [&] {
      const auto location = below(4) == 0 ? sharedName() : Ref<Text>();
      switch (below(depth < 3 ? 8 : 6)) {
        case 0:
        case 1:
          // An event is recorded by one command.
          if (is_valid_ && (shared_kinds_ & lists(bodies))) return clear(location);
          return signal(location);
        case 2: {
          const auto from = operand(), to = operand();
          return wrap(fb::Work::Copy, fb::CreateCopy(builder_, fb::CopyKind::device_to_device, 0, from, to),
                      location);
        }
        case 3:
          return !is_valid_ || (inputs_ > 0 && outputs_ > 0) ? transfer(location) : clear(location);
        case 6: {
          const auto inside = commandList(bodies, depth + 1);
          const auto count = is_valid_ ? oneOf<uint64_t>({1, 2, 4, 64, uint64_t{1} << 12})
                                       : oneOf<uint64_t>({1, 2, 4, 64, uint64_t{1} << 40, uint64_t{1} << 62});
          return wrap(fb::Work::Repeat, fb::CreateRepeat(builder_, count, inside), location);
        }
        case 7: {
          // What is valid stands at the top, and its parts touch nothing: they would touch one another.
          const bool may_be_full = !is_valid_;
          const auto inside = may_be_full ? commandList(bodies, depth + 1) : List<fb::Command>();
          const auto parts = is_valid_ ? oneOf<uint64_t>({2, 4, 64})
                                       : oneOf<uint64_t>({0, 1, 2, 3, 64, uint64_t{1} << 40, UINT64_MAX});
          const bool by_rows = (is_valid_ && depth > 0) || below(2) == 0;
          return wrap(fb::Work::Parallel, fb::CreateParallel(builder_, parts, by_rows, inside), location);
        }
        default:
          return clear(location);
      }
    });
  }

  template <typename T>
  Ref<fb::Command> wrap(fb::Work kind, Ref<T> work, Ref<Text> location) {
    return fb::CreateCommand(builder_, kind, work.Union(), location);
  }

  List<fb::Command> commandList(Kind kind, int depth) {
    const bool was_recorded = std::exchange(is_recorded_, false);
    const uint64_t last = last_event_;
    const auto made = list<fb::Command>(kind, 4, [&] { return command(depth); });
    is_recorded_ = was_recorded;
    last_event_ = last;
    return made;
  }

  Ref<fb::Command> clear(Ref<Text> location) {
    return wrap(fb::Work::Fill, fb::CreateFill(builder_, operand()), location);
  }

  /// A record, or a wait for the event that was last recorded.
  Ref<fb::Command> signal(Ref<Text> location) {
    const bool waits = is_valid_ ? std::exchange(is_recorded_, !is_recorded_) : below(2) == 0;
    const auto event =
        static_cast<uint32_t>(is_valid_ ? (waits ? last_event_ : last_event_ = events_++) : below(4));
    const auto distance = is_valid_ ? 1024 : oneOf<uint32_t>({0, 1, 1024, UINT32_MAX});
    return waits ? wrap(fb::Work::Wait, fb::CreateWait(builder_, event, distance), location)
                 : wrap(fb::Work::Record, fb::CreateRecord(builder_, event), location);
  }

  /// A copy of an input or to an output.
  Ref<fb::Command> transfer(Ref<Text> location) {
    const bool is_input = below(2) == 0;
    const auto port = static_cast<uint32_t>(is_valid_ ? below(is_input ? inputs_ : outputs_) : below(2));
    const auto all = fb::CreateOperand(builder_, static_cast<uint32_t>(below(buffers_)), 0, kBufferBytes);
    return is_input ? wrap(fb::Work::Copy,
                           fb::CreateCopy(builder_, fb::CopyKind::host_to_device, port, 0, all), location)
                    : wrap(fb::Work::Copy,
                           fb::CreateCopy(builder_, fb::CopyKind::device_to_host, port, all, 0), location);
  }

  Ref<fb::Check> check() {
    return part<fb::Check>(checks, [&] {
      const auto op = sharedName(), layer = sharedName(), location = sharedName();
      return fb::CreateCheck(builder_, op, layer, location);
    });
  }

  Ref<fb::Input> input() {
    const auto called = name();
    const uint64_t buffer = is_valid_ ? inputs_ : below(buffers_);
    ++inputs_;
    return fb::CreateInput(builder_, called, fb::InputRole::data, static_cast<uint32_t>(buffer),
                           oneOf<int64_t>({-1, 10, INT64_MAX}));
  }

  Ref<fb::Output> output() {
    const auto called = name();
    ++outputs_;
    const auto counted =
        !is_valid_ && below(8) == 0 ? list<fb::Check>(checks, 4, [&] { return check(); }) : 0;
    return fb::CreateOutput(builder_, called, static_cast<uint32_t>(below(buffers_)), counted);
  }

  Ref<fb::Stream> stream() {
    return part<fb::Stream>(streams, [&] {
      const auto called = sharedName();
      return fb::CreateStream(builder_, called, commandList(bodies, 0));
    });
  }

  Ref<fb::Program> program() {
    return part<fb::Program>(programs, [&] {
      const auto called = name();
      inputs_ = outputs_ = events_ = 0;
      is_recorded_ = false;
      const auto inputs = list<fb::Input>(ports, 2, [&] { return input(); });
      const auto outputs = list<fb::Output>(ports, 2, [&] { return output(); });
      const auto walks = list<fb::Stream>(streams, 2, [&] { return stream(); });
      const auto signals =
          is_valid_ && events_ > 0 ? names(events_) : list<Text>(events, 4, [&] { return sharedName(); });
      return fb::CreateProgram(builder_, called, inputs, outputs, walks, signals);
    });
  }

  Ref<fb::Buffer> buffer(uint64_t index) {
    const auto called = name(), location = sharedName();
    std::vector<int64_t> extents(below(4) == 0 ? 16 : 1, 1);
    extents.front() = kBufferBytes;
    const auto shape = builder_.CreateVector(extents);
    const uint64_t stride = slots_ > 1 && below(2) && !is_valid_ ? kBufferBytes : 0;
    return fb::CreateBuffer(builder_, called, fb::DataType::i8, shape, index * kBufferBytes * 64,
                            kBufferBytes, stride, fb::Category::activation, location);
  }

  Ref<fb::Plan> makePlan() {
    const auto called = name();
    const auto features = below(4) == 0 ? list<Text>(events, 4, [&] { return sharedName(); }) : 0;
    const auto target = fb::CreateTarget(builder_, fb::TargetKind::host, called, features);
    const auto needed = list<fb::Library>(libraries, 1, [&] {
      const auto library = sharedName(), version = sharedName();
      return fb::CreateLibrary(builder_, library, version);
    });
    buffers_ = 1 + (below(3) == 0 ? below(longest_) : below(8));
    std::vector<Ref<fb::Buffer>> places;
    for (uint64_t i = 0; i < buffers_; ++i) places.push_back(buffer(i));
    const auto buffers = builder_.CreateVector(places);
    uint64_t held = 0;
    const auto state = list<fb::Variable>(variables, 2, [&] {
      const auto variable = name(), initializer = sharedName();
      return fb::CreateVariable(builder_, variable, fb::VariableKind::parameter,
                                static_cast<uint32_t>(held++ % buffers_), initializer);
    });
    const bool has_kernels = !is_valid_ && below(8) == 0;
    const auto functions =
        has_kernels ? list<fb::Kernel>(kernels, 2,
                                       [&] {
                                         const auto kernel = sharedName(), symbol = sharedName(),
                                                    location = sharedName();
                                         return fb::CreateKernel(builder_, kernel, symbol, 2, location);
                                       })
                    : 0;
    const auto entries = list<fb::Program>(programs, 3, [&] { return program(); });
    return fb::CreatePlan(builder_, called, 0, target, needed, 0, 4, 4, buffers_ * kBufferBytes * 64,
                          kBufferBytes, slots_, 0, buffers, state, 0, functions, 0, entries);
  }

  /// Some word of the payload, which may be an offset or a count, leads or reaches elsewhere.
  void bend(std::string& payload) {
    const size_t at = below(payload.size() / 4) * 4;
    uint32_t word;
    std::memcpy(&word, payload.data() + at, sizeof(word));
    const auto far = static_cast<uint32_t>(below(payload.size()) & ~uint64_t{3});
    word = oneOf<uint32_t>({word + 4, word - 4, word + 8, far, far, word * 2, 1, UINT32_MAX});
    std::memcpy(payload.data() + at, &word, sizeof(word));
  }

  static constexpr uint64_t kBufferBytes = 64, kOperandBytes = 16, kMost = 1 << 18;

  std::mt19937_64 random_;
  bool is_valid_;  // or nearly so, and large
  uint64_t shared_kinds_, grown_kinds_, longest_, longest_name_, names_ = 0, buffers_ = 1;
  uint64_t inputs_ = 0, outputs_ = 0, events_ = 0;  // of the program
  uint64_t last_event_ = 0;
  bool is_recorded_ = false;  // the last event of this list, and not yet waited for
  uint32_t slots_;
  flatbuffers::FlatBufferBuilder builder_;
  std::map<Kind, std::vector<flatbuffers::uoffset_t>> made_, lists_;
};

/// Runs `read` and demands that it goes through and holds what is in proportion to `bytes`.
template <typename Read>
auto measured(size_t bytes, const char* what, Read read) {
  constexpr int64_t kHeldPerByte = 10, kHeldAlways = 1 << 16;
  constexpr uint64_t kVisitsPerByte = 8, kVisitsAlways = 1000;
  visited_elements = 0;
  const int64_t held = heldBytes();
  resetMostHeldBytes();
  auto result = read();
  const int64_t most = mostHeldBytes() - held;
  require(visited_elements <= kVisitsPerByte * bytes + kVisitsAlways, what);
  require(most <= kHeldPerByte * static_cast<int64_t>(bytes) + kHeldAlways, what);
  return result;
}

}  // namespace
}  // namespace gpuc

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace gpuc;
  std::string file = Generator({reinterpret_cast<const char*>(data), size}).file();
  const size_t bytes = file.size();
  Result<Plan> plan = measured(bytes, "reading", [&] { return Plan::parse(std::move(file)); });
  if (!plan.ok()) {
    requireOneLine(plan, "");
    return 0;
  }
  size_t length = 0;
  const TextSink count = [&](std::string_view piece) { length += piece.size(); };
  measured(bytes, "a table", [&] { return inspectText(*plan, true, true, count), length; });
  measured(bytes, "JSON", [&] { return inspectJson(*plan, count), length; });
  measured(bytes, "a drawing", [&] { return inspectHtml(*plan, {}, count), length; });
  for (int threads : {1, 2})
    measured(bytes, threads == 1 ? "a session" : "a session of two threads", [&] {
      return Session::create(*plan, {.device = "host", .threads = threads, .check_memory = true}).ok();
    });
  return 0;
}
