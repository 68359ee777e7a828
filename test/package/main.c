/* The C API from a program in C11, on the plan of test/corpus/plan/codeless: its program `step` takes x,
 * 4x16xf32, and sets the variable w to ones, which is also its second output. */
#include <runtime/gpuc_c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fail(int line, const char *what) {
  fprintf(stderr, "error: %s:%d: %s; the last error is '%s'\n", __FILE__, line, what, gpuc_last_error());
  exit(1);
}
#define EXPECT(condition) ((condition) ? (void)0 : fail(__LINE__, #condition))
#define OK(call) EXPECT((call) == GPUC_OK)
/* The call fails, and the error has this text in it. */
#define REFUSED(call, text) (EXPECT((call) == GPUC_ERROR), EXPECT(strstr(gpuc_last_error(), text)))

static void describe(const gpuc_plan *plan) {
  gpuc_plan_info info = GPUC_INIT(gpuc_plan_info);
  OK(gpuc_plan_describe(plan, &info));
  EXPECT(!strcmp(info.name, "test") && !strcmp(info.target, "host (test)"));
  EXPECT(info.batch == 4 && info.arena_bytes == 2688 && info.seed == 7);
  EXPECT(info.program_count == 1 && info.variable_count == 1);

  gpuc_program_info step = GPUC_INIT(gpuc_program_info);
  OK(gpuc_plan_describe_program(plan, 0, &step));
  EXPECT(!strcmp(step.name, "step") && step.input_count == 1 && step.output_count == 2);
  gpuc_tensor_info x = GPUC_INIT(gpuc_tensor_info), w = GPUC_INIT(gpuc_tensor_info);
  OK(gpuc_plan_input(plan, 0, 0, &x));
  EXPECT(!strcmp(x.name, "x") && x.type == GPUC_F32 && x.rank == 2 && x.shape[1] == 16 && x.bytes == 256 &&
         x.range == -1);
  OK(gpuc_plan_output(plan, 0, 1, &w));
  EXPECT(!strcmp(w.name, "w"));
  OK(gpuc_plan_variable(plan, 0, &w));
  EXPECT(!strcmp(w.name, "w") && w.bytes == 256);

  REFUSED(gpuc_plan_describe_program(plan, 1, &step), "program 1: there are 1");
  REFUSED(gpuc_plan_input(plan, 0, 1, &x), "input 1: there are 1");
  REFUSED(gpuc_plan_output(plan, 0, 2, &w), "output 2: there are 2");
  REFUSED(gpuc_plan_variable(plan, 1, &w), "variable 1: there are 1");
  REFUSED(gpuc_plan_describe(plan, NULL), "'info' is null");

  /* A caller that was compiled with an older header, whose struct ends before `bytes`. */
  gpuc_tensor_info old = GPUC_INIT(gpuc_tensor_info);
  old.size = offsetof(gpuc_tensor_info, bytes);
  old.bytes = 77;
  OK(gpuc_plan_input(plan, 0, 0, &old));
  EXPECT(old.rank == 2 && old.bytes == 77);
  old.size = 0;
  REFUSED(gpuc_plan_input(plan, 0, 0, &old), "GPUC_INIT");
}

static void train(gpuc_session *session) {
  float ones[64], read[64];
  const int64_t shape[] = {4, 16}, flat[] = {64};
  gpuc_tensor x = {ones, GPUC_F32, 2, shape}, y;
  size_t step;
  for (int i = 0; i < 64; ++i)
    ones[i] = 1;
  OK(gpuc_session_program(session, "step", &step));
  OK(gpuc_session_run(session, step, &x, 1, GPUC_ALL_ROWS));
  OK(gpuc_session_wait(session));
  OK(gpuc_session_output(session, step, 1, &y));
  EXPECT(y.type == GPUC_F32 && y.rank == 2 && y.shape[0] == 4 && y.shape[1] == 16);
  EXPECT(!memcmp(y.data, ones, sizeof(ones)));
  OK(gpuc_session_read_variable(session, "w", read, sizeof(read)));
  EXPECT(!memcmp(read, ones, sizeof(ones)));
  read[63] = 5;
  OK(gpuc_session_write_variable(session, "w", read, sizeof(read)));
  memset(read, 0, sizeof(read));
  OK(gpuc_session_read_variable(session, "w", read, sizeof(read)));
  EXPECT(read[0] == 1 && read[63] == 5);

  REFUSED(gpuc_session_program(session, "train", &step), "no entry 'train', it has: step");
  REFUSED(gpuc_session_run(session, step, NULL, 0, GPUC_ALL_ROWS), "0 inputs given, it takes 1");
  REFUSED(gpuc_session_run(session, step, NULL, 1, GPUC_ALL_ROWS), "'inputs' is null");
  REFUSED(gpuc_session_run(session, 9, &x, 1, GPUC_ALL_ROWS), "program 9: there are 1");
  REFUSED(gpuc_session_run(session, step, &x, 1, 5), "rows");
  gpuc_tensor many[] = {x, x, x};
  REFUSED(gpuc_session_run(session, step, many, 3, GPUC_ALL_ROWS), "3 inputs given, it takes 1");
  gpuc_tensor bad = x;
  bad.shape = flat, bad.rank = 1;
  REFUSED(gpuc_session_run(session, step, &bad, 1, GPUC_ALL_ROWS), "64xf32");
  bad = x, bad.type = GPUC_I32;
  REFUSED(gpuc_session_run(session, step, &bad, 1, GPUC_ALL_ROWS), "4x16xi32");
  bad.type = (gpuc_type)99;
  REFUSED(gpuc_session_run(session, step, &bad, 1, GPUC_ALL_ROWS), "input 0: 99 is no element type");
  bad = x, bad.data = NULL;
  REFUSED(gpuc_session_run(session, step, &bad, 1, GPUC_ALL_ROWS), "input 0: its data is null");
  REFUSED(gpuc_session_output(session, step, 2, &y), "output 2: there are 2");
  REFUSED(gpuc_session_read_variable(session, "v", read, sizeof(read)), "'v'");
  REFUSED(gpuc_session_write_variable(session, "w", read, 1), "'w'");
}

int main(int argc, char **argv) {
  gpuc_plan *plan = NULL, *none = NULL;
  gpuc_session *session = NULL;
  EXPECT(argc == 2);
  EXPECT(gpuc_c_version() >= GPUC_C_VERSION && strlen(gpuc_version()) > 0);
  EXPECT(!strcmp(gpuc_last_error(), ""));
  OK(gpuc_plan_load(argv[1], &plan));
  describe(plan);

  REFUSED(gpuc_plan_load("/none.plan", &none), "/none.plan");
  REFUSED(gpuc_plan_load(NULL, &none), "'path' is null");
  REFUSED(gpuc_plan_parse("no plan", 7, &none), "plan");
  gpuc_session_options options = GPUC_INIT(gpuc_session_options);
  options.device = "abacus";
  REFUSED(gpuc_session_create(plan, &options, &session), "abacus");
  options.device = "host", options.threads = -1;
  REFUSED(gpuc_session_create(plan, &options, &session), "-1 threads");
  EXPECT(!none && !session);

  options.threads = 1;
  OK(gpuc_session_create(plan, &options, &session));
  gpuc_plan_free(plan); /* The session has what it needs of it. */
  EXPECT(!gpuc_session_warning(session, 99));
  train(session);
  gpuc_session_free(session);
  gpuc_session_free(NULL);
  gpuc_plan_free(NULL);
  return 0;
}
