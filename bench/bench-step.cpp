// gpuc as a candidate of scripts/bench: runs an entry of a plan on request, in one process from the first to
// the last round. What it reads and answers, a line each, is in bench/README.md.
//
//   bench-step PLAN ENTRY VARIABLES.safetensors THREADS NAME=FILE.npy…
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>

#include "runtime/base/tool_main.h"
#include "runtime/tooling/program_inputs.h"
#include "runtime/weights/variable_store.h"

using namespace gpuc;

namespace {

constexpr double kChunkSeconds = 0.001;  // as bench/peers/worker.py's, which says why
constexpr double kLongStepSeconds = 0.025;
constexpr int kLeastSteps = 4;
constexpr int kLeastChunks = 5;

using Clock = std::chrono::steady_clock;

class Worker {
 public:
  static Result<Worker> open(int argc, char** argv) {
    GPUC_ASSIGN_OR_RETURN(Plan plan, Plan::load(argv[1]));
    GPUC_ASSIGN_OR_RETURN(Session session, Session::create(plan, {.threads = std::atoi(argv[4])}));
    GPUC_ASSIGN_OR_RETURN(ProgramId step, session.program(argv[2]));
    GPUC_ASSIGN_OR_RETURN(ProgramInputs inputs, ProgramInputs::gather(plan.info().programs[step.index],
                                                                      {argv + 5, argv + argc}, 0));
    return Worker(std::move(session), step, std::move(inputs), argv[3]);
  }

  /// Back to the first weights; the optimizer and the counter of steps begin anew.
  Status reset() {
    GPUC_ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::open(variables_));
    return VariableStore(session_).restore(file);
  }

  /// [loss, …] of the first `count` steps, each the mean over the batch.
  Result<std::string> losses(int count) {
    GPUC_RETURN_IF_ERROR(reset());
    std::ostringstream text;
    text.precision(9);
    text << "[";
    for (int i = 0; i < count; ++i) {
      GPUC_RETURN_IF_ERROR(run(1));
      text << (i == 0 ? "" : ", ") << output("loss_sum") / output("count");
    }
    return text.str() + "]";
  }

  /// [µs a step, …], one number for each chunk of steps, of a round that takes `seconds` or longer.
  Result<std::string> round(double seconds) {
    if (steps_ == 0) GPUC_RETURN_IF_ERROR(chooseChunks());
    std::ostringstream text;
    text << "[";
    double sum = 0;
    for (int chunk = 0; chunk < least_chunks_ || sum < seconds; ++chunk) {
      GPUC_ASSIGN_OR_RETURN(double once, timed(steps_));
      sum += once * steps_;
      text << (chunk == 0 ? "" : ", ") << once * 1e6;
    }
    return text.str() + "]";
  }

 private:
  Worker(Session session, ProgramId step, ProgramInputs inputs, std::string variables)
      : session_(std::move(session)),
        step_(step),
        inputs_(std::move(inputs)),
        variables_(std::move(variables)) {}

  /// How many steps make a chunk. A long step is one by itself, and one is enough for a round.
  Status chooseChunks() {
    GPUC_ASSIGN_OR_RETURN(double first, timed(1));  // it finds cold caches
    steps_ = least_chunks_ = 1;
    if (first >= kLongStepSeconds) return okStatus();
    GPUC_RETURN_IF_ERROR(timed(kLeastSteps).status());
    GPUC_ASSIGN_OR_RETURN(double once, timed(kLeastSteps));
    steps_ = std::max<int>(kLeastSteps, static_cast<int>(std::ceil(kChunkSeconds / once)));
    least_chunks_ = kLeastChunks;
    return okStatus();
  }

  Status run(int count) {
    for (int i = 0; i < count; ++i) GPUC_RETURN_IF_ERROR(session_.run(step_, inputs_.views()));
    return session_.wait();
  }

  /// Seconds a step.
  Result<double> timed(int count) {
    Clock::time_point begin = Clock::now();
    GPUC_RETURN_IF_ERROR(run(count));
    return std::chrono::duration<double>(Clock::now() - begin).count() / count;
  }

  float output(const std::string& name) {
    const std::vector<TensorSpec>& outputs = session_.plan().info().programs[step_.index].outputs;
    auto found =
        std::find_if(outputs.begin(), outputs.end(), [&](const TensorSpec& it) { return it.name == name; });
    if (found == outputs.end()) return std::nanf("");
    return *static_cast<const float*>(
        session_.output(step_, static_cast<size_t>(found - outputs.begin())).data);
  }

  Session session_;
  ProgramId step_;
  ProgramInputs inputs_;
  std::string variables_;
  int steps_ = 0;         // of a chunk; 0 until it is known
  int least_chunks_ = 0;  // of a round
};

/// The answer to one line.
Result<std::string> answer(Worker& worker, const std::string& line) {
  std::istringstream words(line);
  std::string verb;
  double number = 0;
  words >> verb >> number;
  if (verb == "losses") return worker.losses(static_cast<int>(number));
  if (verb == "round") return worker.round(number);
  return Status::error("'" + line + "': neither 'losses N' nor 'round SECONDS'");
}

Status serve(int argc, char** argv) {
  GPUC_ASSIGN_OR_RETURN(Worker worker, Worker::open(argc, argv));
  GPUC_RETURN_IF_ERROR(worker.reset());
  std::cout << "{\"version\": \"gpuc\", \"form\": \"one plan\"}" << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    GPUC_ASSIGN_OR_RETURN(std::string text, answer(worker, line));
    std::cout << text << std::endl;
  }
  return okStatus();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) {
    std::fprintf(stderr,
                 "error: usage: bench-step PLAN ENTRY VARIABLES.safetensors THREADS NAME=FILE.npy…\n");
    return 2;
  }
  return exitStatus(serve(argc, argv));
}
