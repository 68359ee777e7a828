// Trains a compiled plan on several ranks, processes of this machine, with a loop of one's own:
//
//   gpuc-model linear-regression in=2 batch=16 optimizer=sgd:lr=0.1 -o line.mlir
//   gpuc-compile line.mlir --data-parallel -o line.plan
//   train-on-ranks line.plan 4
//
// The data is y = 3·x0 - 2·x1 + 1 at random points, of which each rank draws its own; the weights that come
// out, which all have, are printed by the first.
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "runtime/comm/launch.h"
#include "runtime/gpuc.h"

namespace {

// One rank among those that `ranks` speaks to: all make the same calls, and what the plan sums is summed over
// all of them.
gpuc::Result<int> train(const char *path, gpuc::Communicator &ranks) {
  GPUC_ASSIGN_OR_RETURN(gpuc::Plan plan, gpuc::Plan::load(path));
  gpuc::SessionOptions options;
  options.threads = 1;
  options.communicator = &ranks;
  GPUC_ASSIGN_OR_RETURN(gpuc::Session session, gpuc::Session::create(plan, options));
  GPUC_RETURN_IF_ERROR(session.initialize()); // by the plan's seed: the same weights on all ranks
  GPUC_ASSIGN_OR_RETURN(gpuc::ProgramId step, session.program("train_step"));

  const int64_t batch = plan.info().batch;   // of one rank
  std::vector<float> x(batch * 2), y(batch); // [batch, 2], [batch, 1]
  const std::vector<int64_t> x_shape = {batch, 2}, y_shape = {batch, 1};
  const gpuc::HostTensorView inputs[] = {{x.data(), gpuc::DataType::f32, x_shape},
                                         {y.data(), gpuc::DataType::f32, y_shape}};
  std::mt19937 random(static_cast<uint32_t>(ranks.rank()));
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (int i = 1; i <= 200; ++i) {
    for (int64_t row = 0; row < batch; ++row) {
      x[2 * row] = uniform(random);
      x[2 * row + 1] = uniform(random);
      y[row] = 3 * x[2 * row] - 2 * x[2 * row + 1] + 1;
    }
    GPUC_RETURN_IF_ERROR(session.run(step, inputs)); // an error names the rank that was lost
    GPUC_RETURN_IF_ERROR(session.wait());
    const float loss_sum = *static_cast<const float *>(session.output(step, 0).data); // over all ranks' rows
    if (i % 50 == 0)
      std::printf("step %3d  loss %.6f\n", i, loss_sum / (batch * ranks.size()));
  }

  float weight[2], bias[1];
  GPUC_RETURN_IF_ERROR(session.readVariable("linear.weight", std::as_writable_bytes(std::span(weight))));
  GPUC_RETURN_IF_ERROR(session.readVariable("linear.bias", std::as_writable_bytes(std::span(bias))));
  std::printf("y = %.3f x0 + %.3f x1 + %.3f\n", weight[0], weight[1], bias[0]);
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  const int64_t ranks = argc == 3 ? std::atoi(argv[2]) : 0;
  if (ranks < 1) {
    std::fprintf(stderr, "error: usage: train-on-ranks PLAN RANKS\n");
    return 2;
  }
  // Forks, watches the ranks and hands signals on; what the others say goes nowhere, what they fail by to
  // stderr.
  const gpuc::Result<int> status = gpuc::launchRanks(
      {.ranks = ranks}, [&](gpuc::Communicator &communicator) { return train(argv[1], communicator); });
  if (!status.ok())
    std::fprintf(stderr, "error: %s\n", status.message().c_str());
  return status.ok() ? *status : 1;
}
