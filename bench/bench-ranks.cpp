// gpuc as a candidate of bench/data_parallel.py: ranks of this machine, one thread each, that run a plan's
// train_step on request, each on its own rows of the batch.
//
//   bench-ranks PLAN VARIABLES.safetensors RANKS NAME=FILE…
//
// Rank r reads its rows of an input from FILE.r.npy.
// It first writes a line of JSON, then answers each line of its input with one: `losses N` with the losses of
// the first N steps from these variables, `steps N` with the µs that a step took, of so many.
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "runtime/base/tool_main.h"
#include "runtime/comm/launch.h"
#include "runtime/tooling/program_inputs.h"
#include "runtime/weights/variable_store.h"

using namespace gpuc;

namespace {

using Clock = std::chrono::steady_clock;

/// What the first rank has been asked for, as all hear it.
struct Request {
  enum Verb : int64_t { end, losses, steps } verb = end;
  int64_t count = 0;
};

class Rank {
 public:
  static Result<Rank> open(char** arguments, int count, Communicator& ranks) {
    GPUC_ASSIGN_OR_RETURN(Plan plan, Plan::load(arguments[1]));
    GPUC_ASSIGN_OR_RETURN(Session session, Session::create(plan, {.threads = 1, .communicator = &ranks}));
    GPUC_ASSIGN_OR_RETURN(ProgramId step, session.program("train_step"));
    std::vector<std::string> files(arguments + 4, arguments + count);
    for (std::string& file : files) file += "." + std::to_string(ranks.rank()) + ".npy";
    GPUC_ASSIGN_OR_RETURN(ProgramInputs inputs,
                          ProgramInputs::gather(plan.info().programs[step.index], files, /*seed=*/0));
    return Rank(std::move(session), step, std::move(inputs), arguments[2], ranks);
  }

  /// Until there is nothing more to answer.
  Result<int> serve() {
    GPUC_RETURN_IF_ERROR(reset());
    if (ranks_.rank() == 0) std::cout << "{\"version\": \"gpuc\", \"form\": \"one plan\"}" << std::endl;
    while (true) {
      GPUC_ASSIGN_OR_RETURN(Request request, next());
      if (request.verb == Request::end) return 0;
      std::string text;
      if (request.verb == Request::losses) {
        GPUC_ASSIGN_OR_RETURN(text, losses(request.count));
      } else {
        GPUC_ASSIGN_OR_RETURN(text, steps(request.count));
      }
      if (ranks_.rank() == 0) std::cout << text << std::endl;
    }
  }

 private:
  Rank(Session session, ProgramId step, ProgramInputs inputs, std::string variables, Communicator& ranks)
      : session_(std::move(session)),
        step_(step),
        inputs_(std::move(inputs)),
        variables_(std::move(variables)),
        ranks_(ranks) {}

  Result<Request> next() {
    Request request;
    std::string line, verb;
    if (ranks_.rank() == 0 && std::getline(std::cin, line)) {
      std::istringstream words(line);
      words >> verb >> request.count;
      request.verb = verb == "losses" ? Request::losses : verb == "steps" ? Request::steps : Request::end;
      if (request.verb == Request::end)
        return Status::error("'" + line + "': neither 'losses N' nor 'steps N'");
    }
    std::array<std::byte, sizeof(Request)> bytes;
    std::memcpy(bytes.data(), &request, sizeof request);
    GPUC_RETURN_IF_ERROR(ranks_.broadcast(bytes, 0));
    std::memcpy(&request, bytes.data(), sizeof request);
    return request;
  }

  /// Back to the first weights; the optimizer and the counter of steps begin anew.
  Status reset() {
    GPUC_ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::open(variables_));
    return VariableStore(session_).restore(file);
  }

  Result<std::string> losses(int64_t count) {
    GPUC_RETURN_IF_ERROR(reset());
    std::ostringstream text;
    text.precision(9);
    text << "[";
    for (int64_t i = 0; i < count; ++i) {
      GPUC_RETURN_IF_ERROR(run(1));
      text << (i == 0 ? "" : ", ") << output(0) / output(1);  // loss_sum and count, of all ranks
    }
    return text.str() + "]";
  }

  Result<std::string> steps(int64_t count) {
    const Clock::time_point begin = Clock::now();
    GPUC_RETURN_IF_ERROR(run(count));
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    return std::to_string(1e6 * seconds / static_cast<double>(count));
  }

  Status run(int64_t count) {
    for (int64_t i = 0; i < count; ++i) GPUC_RETURN_IF_ERROR(session_.run(step_, inputs_.views()));
    return session_.wait();
  }

  float output(size_t index) { return *static_cast<const float*>(session_.output(step_, index).data); }

  Session session_;
  ProgramId step_;
  ProgramInputs inputs_;
  std::string variables_;
  Communicator& ranks_;
};

Result<int> serve(char** arguments, int count, Communicator& ranks) {
  GPUC_ASSIGN_OR_RETURN(Rank rank, Rank::open(arguments, count, ranks));
  return rank.serve();
}

}  // namespace

int main(int argc, char** argv) {
  const int ranks = argc < 4 ? 0 : std::atoi(argv[3]);
  if (ranks < 1) {
    std::fprintf(stderr, "error: usage: bench-ranks PLAN VARIABLES.safetensors RANKS NAME=FILE…\n");
    return 2;
  }
  const Result<int> status = launchRanks(
      {.ranks = ranks}, [&](Communicator& communicator) { return serve(argv, argc, communicator); });
  if (!status.ok()) std::fprintf(stderr, "error: %s\n", status.message().c_str());
  return status.ok() ? *status : 1;
}
