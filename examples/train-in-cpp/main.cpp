// Trains a compiled plan from a program of one's own, with nothing but gpuc's runtime:
//
//   gpuc-model linear-regression in=2 batch=64 optimizer=sgd:lr=0.1 -o line.mlir
//   gpuc-compile line.mlir -o line.plan
//   train-in-cpp line.plan
//
// The data is y = 3·x0 - 2·x1 + 1 at random points; the weights that come out are printed.
#include <cstdio>
#include <random>
#include <vector>

#include "runtime/gpuc.h"

namespace {

gpuc::Status train(const char* path) {
  GPUC_ASSIGN_OR_RETURN(gpuc::Plan plan, gpuc::Plan::load(path));
  GPUC_ASSIGN_OR_RETURN(gpuc::Session session, gpuc::Session::create(plan));
  GPUC_RETURN_IF_ERROR(session.initialize());
  GPUC_ASSIGN_OR_RETURN(gpuc::ProgramId step, session.program("train_step"));

  const int64_t batch = plan.info().batch;
  std::vector<float> x(batch * 2), y(batch);  // [batch, 2], [batch, 1]
  const std::vector<int64_t> x_shape = {batch, 2}, y_shape = {batch, 1};
  const gpuc::HostTensorView inputs[] = {{x.data(), gpuc::DataType::f32, x_shape},
                                         {y.data(), gpuc::DataType::f32, y_shape}};
  std::mt19937 random(0);
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (int i = 1; i <= 200; ++i) {
    for (int64_t row = 0; row < batch; ++row) {
      x[2 * row] = uniform(random);
      x[2 * row + 1] = uniform(random);
      y[row] = 3 * x[2 * row] - 2 * x[2 * row + 1] + 1;
    }
    GPUC_RETURN_IF_ERROR(session.run(step, inputs));
    GPUC_RETURN_IF_ERROR(session.wait());
    const float loss_sum = *static_cast<const float*>(session.output(step, 0).data);
    if (i % 50 == 0) std::printf("step %3d  loss %.6f\n", i, loss_sum / batch);
  }

  float weight[2], bias[1];
  GPUC_RETURN_IF_ERROR(session.readVariable("linear.weight", std::as_writable_bytes(std::span(weight))));
  GPUC_RETURN_IF_ERROR(session.readVariable("linear.bias", std::as_writable_bytes(std::span(bias))));
  std::printf("y = %.3f x0 + %.3f x1 + %.3f\n", weight[0], weight[1], bias[0]);
  return gpuc::okStatus();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "error: usage: train-in-cpp PLAN\n");
    return 2;
  }
  gpuc::Status status = train(argv[1]);
  if (!status.ok()) std::fprintf(stderr, "error: %s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}
