// Loads a plan with the installed package and runs its program `step` once.
#include <runtime/gpuc.h>

#include <cstdio>
#include <vector>

gpuc::Status run(const char *path) {
  GPUC_ASSIGN_OR_RETURN(gpuc::Plan plan, gpuc::Plan::load(path));
  GPUC_ASSIGN_OR_RETURN(gpuc::Session session, gpuc::Session::create(plan));
  GPUC_ASSIGN_OR_RETURN(gpuc::ProgramId step, session.program("step"));
  std::vector<float> ones(64, 1.0f);
  gpuc::HostTensorView x(ones.data(), plan.info().programs[step.index].inputs[0].spec);
  GPUC_RETURN_IF_ERROR(session.run(step, {&x, 1}));
  GPUC_RETURN_IF_ERROR(session.wait());
  const auto *weight = static_cast<const float *>(session.output(step, 1).data);
  if (weight[0] != 1.0f)
    return gpuc::errorf("the weight is %g, expected 1", static_cast<double>(weight[0]));
  return gpuc::okStatus();
}

int main(int argc, char **argv) {
  gpuc::Status status = argc == 2 ? run(argv[1]) : gpuc::errorf("usage: uses_gpuc PLAN");
  if (status.ok())
    return 0;
  std::fprintf(stderr, "error: %s\n", status.message().c_str());
  return 1;
}
