// What gpuc-run and gpuc-inspect do, on plans built by hand.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "runtime/plan/access.h"
#include "runtime/report/chrome_trace.h"
#include "runtime/report/inspect.h"
#include "runtime/state/npy.h"
#include "runtime/state/safetensors.h"
#include "runtime/tooling/program_inputs.h"
#include "runtime/tooling/run_plan.h"
#include "runtime/weights/variable_store.h"
#include "test/runtime/session_helpers.h"
#include "test/runtime/temporary_folder.h"

namespace gpuc::test {
namespace {

using Json = nlohmann::json;

/// A program whose input is labels in [0, 3).
ProgramInfo labelsProgram() {
  ProgramInfo program{.name = "loss", .inputs = {}, .outputs = {}, .checks = {}};
  program.inputs.push_back({{.name = "labels", .type = DataType::i32, .shape = {5}}, 3});
  return program;
}

TEST(ProgramInputs, AreMadeUpFromTheSeedWithinTheirRange) {
  ProgramInfo program = labelsProgram();
  program.inputs[0].spec.shape = {400};
  Result<ProgramInputs> inputs = ProgramInputs::gather(program, {}, 1),
                        same = ProgramInputs::gather(program, {}, 1),
                        other = ProgramInputs::gather(program, {}, 2);
  ASSERT_TRUE(inputs.ok()) << inputs.message();
  std::vector<int32_t> values = valuesOf<int32_t>(inputs->views()[0]);
  for (int32_t value : values) EXPECT_TRUE(value >= 0 && value < 3) << value;
  EXPECT_EQ(values, valuesOf<int32_t>(same->views()[0]));
  EXPECT_NE(values, valuesOf<int32_t>(other->views()[0]));
}

TEST(ProgramInputs, ComeFromFilesOfJustThatTypeAndShape) {
  TemporaryFolder folder;
  ProgramInfo program = labelsProgram();
  std::vector<int32_t> labels = {0, 1, 2, 1, 0};
  ASSERT_TRUE(
      writeNpy(folder / "labels.npy", {.name = "", .type = DataType::i32, .shape = {5}}, labels.data()).ok());
  Result<ProgramInputs> inputs = ProgramInputs::gather(program, {"labels=" + folder / "labels.npy"}, 1);
  ASSERT_TRUE(inputs.ok()) << inputs.message();
  EXPECT_EQ(valuesOf<int32_t>(inputs->views()[0]), labels);

  auto gather = [&](const std::string& file) { return ProgramInputs::gather(program, {file}, 1); };
  expectError(gather("labels"), "expected NAME=FILE.npy");
  expectError(gather("y=" + folder / "labels.npy"), "entry 'loss' has no input 'y', it has: labels");
  expectError(gather("labels=" + folder / "none.npy"), "none.npy");
  labels[3] = 3;
  ASSERT_TRUE(
      writeNpy(folder / "bad.npy", {.name = "", .type = DataType::i32, .shape = {5}}, labels.data()).ok());
  expectError(gather("labels=" + folder / "bad.npy"), "element 3 is 3, input 'labels' takes 0 to 2");
  ASSERT_TRUE(
      writeNpy(folder / "short.npy", {.name = "", .type = DataType::i32, .shape = {4}}, labels.data()).ok());
  expectError(gather("labels=" + folder / "short.npy"), "holds 4xi32, input 'labels' is 5xi32");
}

TEST(VariableStore, GoesThroughAFile) {
  TemporaryFolder folder;
  Session first = open(everythingPlan(), {.seed = 3}), second = open(everythingPlan());
  ASSERT_TRUE(first.initialize().ok());
  ASSERT_TRUE(VariableStore(first).save(folder / "state").ok());
  Result<SafetensorsFile> file = SafetensorsFile::open(folder / "state");
  ASSERT_TRUE(file.ok()) << file.message();
  auto loaded = VariableStore(second).start(*file, SeedFrom::file);
  ASSERT_TRUE(loaded.ok()) << loaded.message();
  EXPECT_EQ(readVariable<float>(second, "fc1.weight", 256), std::vector<float>(256, 0.5f));
  EXPECT_EQ(readVariable<int64_t>(second, "seed", 1)[0], 3);
}

TEST(Inspect, SaysAllOfItInJson) {
  Json page = Json::parse(inspectJson(everythingPlan().parse()));
  EXPECT_EQ(page["target"], "host:test");
  EXPECT_EQ(page["variables"][2]["name"], "fc1.weight");
  EXPECT_EQ(page["variables"][2]["shape"], Json({16, 16}));
  EXPECT_EQ(page["variables"][2]["dtype"], "f32");
  EXPECT_EQ(page["variables"][2]["kind"], "parameter");
  EXPECT_EQ(page["variables"][2]["bytes"], 1024);
  EXPECT_EQ(page["variables"][2]["offset"], 128);
  const Json& entry = page["entries"]["train_step"];
  ASSERT_EQ(entry["inputs"].size(), 1u) << "rows is hidden";
  EXPECT_TRUE(entry["inputs"][0]["range"].is_null());
  EXPECT_EQ(entry["outputs"][1]["name"], "staged");
  // fill · wait matmul record repeat repeat launch launch copy copy · wait copy copy record · launch
  EXPECT_EQ(page["commands"].size(), 1u + 9u + 4u + 1u);
  EXPECT_EQ(page["commands"][2]["name"], "matmul 4x16x16");
  EXPECT_EQ(page["commands"][6]["depth"], 2);
  EXPECT_EQ(page["commands"][6]["writes"][0]["strides"], Json({1024, 256}));
}

TEST(Inspect, ListsAndDraws) {
  PlanBuilder builder = everythingPlan();
  builder.plan.buffers[0]->name = "<script>";
  builder.plan.buffers[6]->category = fb::Category::activation;  // h
  Plan plan = builder.parse();
  std::string text = inspectText(plan, true, true);
  EXPECT_NE(text.find("train_step  11 commands  2 streams"), std::string::npos) << text;
  EXPECT_NE(text.find("fc1.weight  16x16xf32  parameter  1024  0x80"), std::string::npos) << text;
  EXPECT_NE(text.find("  h  4x16xf32  256"), std::string::npos) << text;
  std::string page = inspectHtml(plan);
  EXPECT_NE(page.find("<title>h\n4x16xf32, 256 bytes, from byte"), std::string::npos) << page;
  EXPECT_EQ(page.find("<script>"), page.rfind("<script>")) << "names are escaped";
}

size_t countIn(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(Inspect, TextOfAPlanIsNoMarkup) {
  const std::string hostile = "\"'><img src=x></title><script>&";
  const std::string page = inspectHtml(everythingPlan().parse());
  auto textsOf = [](fb::PlanT& plan) -> std::vector<std::string*> {
    fb::ProgramT& program = *plan.programs[1];
    return {&plan.name,
            &plan.target->name,
            &plan.buffers[6]->name,
            &program.name,
            &plan.buffers[6]->location,
            &plan.buffers[6]->source,
            &program.events[0],
            &program.streams[0]->name,
            &program.streams[1]->name,
            &plan.kernels[0]->name,
            &program.inputs[0]->name,
            &program.streams[0]->commands[1]->location};
  };
  PlanBuilder all = everythingPlan();
  for (size_t i = 0; i < textsOf(all.plan).size(); ++i) {
    PlanBuilder builder = everythingPlan();
    *textsOf(builder.plan)[i] = hostile;
    const std::string changed = inspectHtml(builder.parse());
    for (const char* markup : {"<img", "<script", "</title>"})
      EXPECT_EQ(countIn(changed, markup), countIn(page, markup)) << i << markup;
    EXPECT_NE(changed.find("&quot;&#39;&gt;&lt;img"), std::string::npos) << "text " << i << " is not there";
  }
}

TEST(ChromeTrace, HasAnEventForEachCommand) {
  Session session = open(everythingPlan(), {.profile_events = 100});
  ASSERT_TRUE(session.initialize().ok());
  Json trace = Json::parse(chromeTrace(session.plan(), session.profile()));
  ASSERT_EQ(trace["traceEvents"].size(), 2u);  // the stream's name, one fill
  const Json& event = trace["traceEvents"][1];
  EXPECT_EQ(event["name"], "fill");
  EXPECT_EQ(event["ph"], "X");
  EXPECT_EQ(event["ts"], 0.0);
  EXPECT_EQ(event["args"]["entry"], "init");
  EXPECT_EQ(event["args"]["location"], "test");
}

struct Outcome {
  int exit_code;
  std::string text;  // stdout and stderr
};

Outcome execute(const std::string& command) {
  FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  Outcome outcome{-1, ""};
  for (int c; (c = std::fgetc(pipe)) != EOF;) outcome.text += static_cast<char>(c);
  int status = ::pclose(pipe);
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return outcome;
}

class Tools : public testing::Test {
 protected:
  std::string run(const std::string& flags) { return std::string(GPUC_RUN) + " " + plan_ + " " + flags; }
  std::string inspect(const std::string& flags) {
    return std::string(GPUC_INSPECT) + " " + plan_ + " " + flags;
  }

  TemporaryFolder folder_;
  std::string plan_ = folder_.write("test.plan", everythingPlan().seal());
};

TEST_F(Tools, RunReportsArenaAllocationsAndTimes) {
  Outcome outcome =
      execute(run("--entry=train_step --repeat=20 --warmup=2 --threads=2 --check-memory --json=-"));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.text;
  Json report = Json::parse(outcome.text);
  EXPECT_EQ(report["arena_bytes"], everythingPlan().plan.arena_bytes);
  EXPECT_EQ(report["touched_bytes"], report["arena_bytes"]);
  EXPECT_EQ(report["allocations_per_step"], 0);
  EXPECT_GT(report["step_us"]["min"], 0.0);
  EXPECT_LE(report["step_us"]["min"], report["step_us"]["median"]);
  EXPECT_LE(report["step_us"]["median"], report["step_us"]["max"]);
}

TEST_F(Tools, RunNamesTheCommandThatReadsDeadBytes) {
  PlanBuilder builder(1, TargetKind::host);
  const uint32_t a = builder.buffer("a", DataType::f32, {16}), y = builder.buffer("y", DataType::f32, {16});
  fb::ProgramT& program = builder.program("predict");
  builder.copy(program.streams[0]->commands, {a}, {y});
  PlanBuilder::output(program, "y", y);
  builder.program("init");
  plan_ = folder_.write("dead.plan", builder.seal());
  EXPECT_EQ(execute(run("--entry=predict")).exit_code, 0);
  const Outcome outcome = execute(run("--entry=predict --check-memory"));
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(
      outcome.text,
      "error: program 'predict': copy (test) reads buffer 'a' at bytes [0, 64) of the arena, some of which "
      "nothing in this run has written\n");
}

TEST_F(Tools, RunWritesOutputsAndStateAndContinuesFromIt) {
  std::string state = folder_ / "state", out = folder_ / "out";
  Outcome outcome = execute(
      run("--entry=train_step --repeat=3 --seed=5 --save-variables=" + state + " --output-dir=" + out));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.text;
  Result<NpyArray> y = readNpy(out + "/y.npy");
  ASSERT_TRUE(y.ok()) << y.message();
  EXPECT_EQ(y->spec.str(), "4x16xf32");
  outcome = execute(run("--entry=train_step --save-variables=" + state + "2 --variables=" + state));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.text;
  Result<SafetensorsFile> saved = SafetensorsFile::open(state + "2");
  ASSERT_TRUE(saved.ok()) << saved.message();
  EXPECT_EQ(saved->find("step")->data[0], 4);
  EXPECT_EQ(saved->find("seed")->data[0], 5);
}

TEST_F(Tools, ErrorsAreOneLineAndHaveTheirExitCode) {
  auto expect = [](const Outcome& outcome, int exit_code, const std::string& part) {
    EXPECT_EQ(outcome.exit_code, exit_code) << outcome.text;
    EXPECT_NE(outcome.text.find(part), std::string::npos) << outcome.text;
    EXPECT_EQ(outcome.text.find("error: "), 0u) << outcome.text;
    EXPECT_EQ(outcome.text.find('\n'), outcome.text.size() - 1) << outcome.text;
  };
  expect(execute(run("--entry=test")), 1, "it has: init, train_step, predict");
  expect(execute(run("--entry=predict --device=cuda")), 1, "no CUDA device: ");
  expect(execute(run("--entry=predict --input=z=f.npy")), 1, "has no input 'z', it has: x");
  expect(execute(run("")), 2,
         "--entry is missing: which program of the plan? It has: init, train_step, predict");
  expect(execute(std::string(GPUC_RUN) + " " + folder_.write("model.mlir", "func.func @predict()")), 1,
         "model.mlir: not a gpuc plan: it does not begin with 'gpucplan'; it is text of .mlir: gpuc-compile "
         "makes a plan of it");
  expect(execute(run("--entry=predict --repeat=0")), 2, "repeat");
  expect(execute(run("--entri=predict")), 2, "--entry");
  expect(execute(std::string(GPUC_RUN)), 2, "no plan given");
  expect(execute(std::string(GPUC_INSPECT) + " " + folder_.write("not.plan", "nothing like it")), 1,
         "not a gpuc plan");
  expect(execute(std::string(GPUC_INSPECT) + " " + folder_ / "none.plan"), 1, "none.plan");
}

TEST_F(Tools, InspectPrintsAndDraws) {
  EXPECT_EQ(Json::parse(execute(inspect("--json")).text)["name"], "test");
  EXPECT_NE(execute(inspect("--variables")).text.find("fc1.weight"), std::string::npos);
  EXPECT_EQ(execute(inspect("--html=" + folder_ / "plan.html")).exit_code, 0);
  EXPECT_NE(fileBytes(folder_ / "plan.html").find("<svg"), std::string::npos);
}

TEST_F(Tools, RunListsDevices) {
  Outcome outcome = execute(std::string(GPUC_RUN) + " --list-devices --json");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.text;
  EXPECT_EQ(Json::parse(outcome.text)[0]["device"], "host");
}

TEST_F(Tools, RunListsDevicesAlone) {
  const std::string run = std::string(GPUC_RUN) + " --list-devices ";
  const std::string why = "error: --list-devices runs nothing, and only --json goes with it, not ";
  EXPECT_EQ(execute(run + "some.plan").text, why + "PLAN\n");
  EXPECT_EQ(execute(run + "--check-memory").text, why + "--check-memory\n");
  EXPECT_EQ(execute(run + "--json --device=cuda").text, why + "--device=NAME\n");
  EXPECT_EQ(execute(run + "--threads=3").exit_code, 2);
}

}  // namespace
}  // namespace gpuc::test
