// What of a plan's file is neither a number nor a command: parts that are shared, and text. A plan whose
// parts lead to one and the same vector is refused before anybody walks through it; no text of a plan that is
// read gives orders to a terminal.
#include <gtest/gtest.h>

#include "runtime/plan/header.h"
#include "runtime/plan/plan.h"
#include "runtime/plan/reach.h"
#include "runtime/plan/seal.h"
#include "test/runtime/plan_builder.h"

namespace gpuc::test {
namespace {

using flatbuffers::FlatBufferBuilder;
template <typename T>
using List = flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<T>>>;

std::string errorOf(std::string file) {
  Result<Plan> plan = Plan::parse(std::move(file));
  return plan.ok() ? "" : plan.message();
}

std::string sealed(FlatBufferBuilder& builder, flatbuffers::Offset<fb::Plan> plan) {
  builder.Finish(plan, fb::PlanIdentifier());
  return sealPlan({reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize()});
}

/// A list of `count` times the same.
template <typename T>
List<T> again(FlatBufferBuilder& builder, size_t count, flatbuffers::Offset<T> element) {
  return builder.CreateVector(std::vector<flatbuffers::Offset<T>>(count, element));
}

std::string planOf(FlatBufferBuilder& builder, List<fb::Program> programs,
                   List<flatbuffers::String> features = 0, List<fb::Library> libraries = 0) {
  const auto name = builder.CreateString("p");
  const auto target = fb::CreateTarget(builder, fb::TargetKind::host, name, features);
  return sealed(builder, fb::CreatePlan(builder, name, 0, target, libraries, 0, 0, 0, 0, 64, 1, 0, 0, 0, 0, 0,
                                        0, programs));
}

/// Few kilobytes that are `count` times as many to who walks through them.
struct SharedPart {
  const char* field;  // at which that comes out
  std::string (*make)(FlatBufferBuilder&, size_t count);
};

const SharedPart kSharedParts[] = {
    {"programs",
     [](FlatBufferBuilder& b, size_t count) {
       const auto name = b.CreateString("f");
       return planOf(b, again(b, count, fb::CreateProgram(b, name)));
     }},
    {"events",
     [](FlatBufferBuilder& b, size_t count) {
       const auto name = b.CreateString("f"), event = b.CreateString("e");
       const auto events = again(b, count, event);
       std::vector<flatbuffers::Offset<fb::Program>> programs;
       for (size_t i = 0; i < 8; ++i) programs.push_back(fb::CreateProgram(b, name, 0, 0, 0, events));
       return planOf(b, b.CreateVector(programs));
     }},
    {"commands",
     [](FlatBufferBuilder& b, size_t count) {
       const auto name = b.CreateString("f");
       auto commands = again(b, count, fb::CreateCommand(b, fb::Work::Wait, fb::CreateWait(b).Union()));
       for (int depth = 0; depth < 4; ++depth) {
         const auto repeat = fb::CreateRepeat(b, 1, commands);
         commands = again(b, 8, fb::CreateCommand(b, fb::Work::Repeat, repeat.Union()));
       }
       const auto streams = again(b, 1, fb::CreateStream(b, name, commands));
       return planOf(b, again(b, 1, fb::CreateProgram(b, name, 0, 0, streams)));
     }},
    {"features",
     [](FlatBufferBuilder& b, size_t count) {
       return planOf(b, 0, again(b, count, b.CreateString(std::string(4000, 'f'))));
     }},
    {"version",
     [](FlatBufferBuilder& b, size_t count) {
       const auto name = b.CreateString(std::string(4000, 'l'));
       return planOf(b, 0, 0, again(b, count, fb::CreateLibrary(b, name, name)));
     }},
    {"op",
     [](FlatBufferBuilder& b, size_t count) {
       const auto name = b.CreateString("o");
       const auto checks = again(b, count, fb::CreateCheck(b, name));
       const auto outputs = again(b, 4, fb::CreateOutput(b, name, 0, checks));
       return planOf(b, again(b, 1, fb::CreateProgram(b, name, 0, outputs)));
     }},
};

TEST(PlanParts, StandForThemselves) {
  for (const SharedPart& part : kSharedParts)
    for (size_t count : {100, 10000}) {
      FlatBufferBuilder builder;
      const std::string file = part.make(builder, count);
      EXPECT_NE(errorOf(file).find("plan with shared parts"), std::string::npos)
          << part.field << errorOf(file);
    }
}

TEST(PlanParts, AreCountedWhereTheyAreReached) {
  for (const std::string& file : {everythingPlan().seal(), sharesPlan().seal()}) {
    Result<Reach> reach = reachOf(std::string_view(file).substr(sizeof(PlanHeader)), 32);
    ASSERT_TRUE(reach.ok()) << reach.message();
    // All but what tells where tables' fields are, and padding.
    EXPECT_GT(reach->bytes, (file.size() - sizeof(PlanHeader)) * 3 / 5);
    EXPECT_LE(reach->bytes, file.size() - sizeof(PlanHeader));
  }
}

TEST(PlanParts, ProgramsAreNotMany) {
  PlanBuilder builder;
  for (int i = 0; i <= 1024; ++i) builder.program("p" + std::to_string(i), 0);
  EXPECT_EQ(errorOf(builder.seal()), "1025 programs, at most 1024");
}

TEST(PlanParts, EachInputHasABuffer) {
  PlanBuilder builder;
  const uint32_t buffer = builder.buffer("x", DataType::f32, {4});
  fb::ProgramT& program = builder.program("predict");
  PlanBuilder::input(program, "a", buffer);
  PlanBuilder::input(program, "b", buffer);
  EXPECT_EQ(errorOf(builder.seal()), "program 'predict': input 'b': another one lies in its buffer 'x'");
}

// everythingPlan: programs 0 init, 1 train_step, 2 predict.
using Texts = std::vector<std::pair<const char*, std::string*>>;
Texts textsOf(fb::PlanT& plan) {
  fb::ProgramT& program = *plan.programs[1];
  fb::CommandT& command = *program.streams[0]->commands[0];
  plan.libraries.emplace_back(std::make_unique<fb::LibraryT>())->name = "library";
  fb::OutputT& output = *program.outputs[0];
  return {{"plan", &plan.name},
          {"compiler", &plan.compiler_version},
          {"target", &plan.target->name},
          {"feature", &plan.target->features[0]},
          {"library", &plan.libraries.back()->name},
          {"version", &plan.libraries.back()->version},
          {"buffer", &plan.buffers[0]->name},
          {"buffer's location", &plan.buffers[0]->location},
          {"buffer's source", &plan.buffers[0]->source},
          {"variable", &plan.variables[0]->name},
          {"initializer", &plan.variables[0]->initializer},
          {"kernel", &plan.kernels[0]->name},
          {"symbol", &plan.kernels[0]->symbol},
          {"kernel's location", &plan.kernels[0]->location},
          {"architecture", &plan.code[0]->architecture},
          {"program", &program.name},
          {"input", &program.inputs[0]->name},
          {"output", &output.name},
          {"stream", &program.streams[0]->name},
          {"event", &program.events[0]},
          {"command's location", &command.location}};
}

constexpr const char* kOrders[] = {"\x1b[31mred",
                                   "\a",
                                   "a\nb",
                                   "\x7f",
                                   "\xc2\x9b"
                                   "31m",
                                   "\x9b"
                                   "31m",
                                   "\xe2\x80\xae"
                                   "tfel",
                                   "\xe2\x81\xa6",
                                   "\xe2\x80\xa8",
                                   "cut \xe2\x80"};

TEST(PlanText, GivesNoOrdersToATerminal) {
  const size_t texts = [] {
    PlanBuilder builder = everythingPlan();
    return textsOf(builder.plan).size();
  }();
  for (size_t i = 0; i < texts; ++i)
    for (const char* order : kOrders) {
      PlanBuilder builder = everythingPlan();
      const auto [name, text] = textsOf(builder.plan)[i];
      *text = order;
      const std::string error = errorOf(builder.seal());
      EXPECT_NE(error.find("a control character"), std::string::npos) << name << ": " << error;
      EXPECT_TRUE(isPrintable(error));
    }
}

TEST(PlanText, OfAnyLanguageIsText) {
  PlanBuilder builder = everythingPlan();
  builder.plan.programs[2]->name = "прогноз 予測 🙂 naïve";
  builder.plan.buffers[0]->location = "tête/注意";
  EXPECT_EQ(errorOf(builder.seal()), "");
}

TEST(PlanText, OfAChecksPlanToo) {
  for (int which = 0; which < 3; ++which) {
    PlanBuilder builder;
    fb::ProgramT& program = builder.program("f");
    const uint32_t buffer = builder.buffer("counts", DataType::i32, {1});
    PlanBuilder::output(program, "nonfinite", buffer);
    fb::CheckT& check = *program.outputs[0]->checks.emplace_back(std::make_unique<fb::CheckT>());
    check.op = "log";
    EXPECT_EQ(errorOf(builder.seal()), "");
    (which == 0 ? check.op : which == 1 ? check.layer : check.location) = "\x1b]0;title\a";
    EXPECT_NE(errorOf(builder.seal()).find("a control character"), std::string::npos) << which;
  }
}

}  // namespace
}  // namespace gpuc::test
