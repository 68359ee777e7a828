// With the installed package alone: gpuc-train's loop, on data of a file and from weights in safetensors.
#include <runtime/train/stop_signal.h>
#include <runtime/train/trainer.h>

#include <cstdio>

int main(int argc, char **argv) {
  if (argc != 5) {
    std::fprintf(stderr, "error: usage: uses_trainer PLAN DATA WEIGHTS FILE\n");
    return 2;
  }
  gpuc::TrainOptions options;
  options.plan = argv[1], options.data = argv[2];
  options.variables = {argv[3]};
  options.save_variables = argv[4];
  options.epochs = 2, options.log_every = 0;
  auto train = [&]() -> gpuc::Status {
    GPUC_ASSIGN_OR_RETURN(auto trainer, gpuc::Trainer::create(options));
    GPUC_ASSIGN_OR_RETURN(gpuc::TrainOutcome outcome, trainer->run(gpuc::listenForStop()));
    std::printf("%lld steps\n", static_cast<long long>(trainer->step()));
    return outcome == gpuc::TrainOutcome::finished ? gpuc::okStatus() : gpuc::errorf("it was stopped");
  };
  gpuc::Status status = train();
  if (!status.ok())
    std::fprintf(stderr, "error: %s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}
