/* gpuc's runtime for C11, and for every language that can call C: load a plan, make a session, run its
 * programs. It is gpuc.h in another form, so what that says of sessions holds here; the library is
 * libgpuc_c.so.
 *
 *   gpuc_plan *plan = NULL;
 *   gpuc_session *session = NULL;
 *   size_t step;
 *   if (gpuc_plan_load("mlp.plan", &plan) || gpuc_session_create(plan, NULL, &session) ||
 *       gpuc_session_initialize(session) || gpuc_session_program(session, "train_step", &step))
 *     fail(gpuc_last_error());
 *   gpuc_tensor batch[] = {{pixels, GPUC_UI8, 4, x_shape}, {labels, GPUC_I32, 1, labels_shape}}, loss;
 *   if (gpuc_session_run(session, step, batch, 2, GPUC_ALL_ROWS) || gpuc_session_wait(session) ||
 *       gpuc_session_output(session, step, 0, &loss))
 *     fail(gpuc_last_error());
 *
 * Errors: a function that can fail returns GPUC_ERROR, and gpuc_last_error() says what is wrong. No exception
 * leaves it, it does not end the process, and what it would have written to is as it was. Null where an
 * address is asked for, and an index that is too large, are errors as well; only a handle that was freed, or
 * is none, cannot be told from a good one.
 *
 * Versions: what stands here stays, under the number that gpuc_c_version() gives; a later number has more.
 * Structs that the library fills or reads and that may grow begin with their size, as the caller was compiled
 * with it: GPUC_INIT sets it.
 *
 * Threads: one at a time uses a session; plans may be shared. */
#ifndef GPUC_C_H
#define GPUC_C_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define GPUC_API __attribute__((visibility("default")))
#else
#define GPUC_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define GPUC_C_VERSION 1

/* The number that the library was built with: at least the GPUC_C_VERSION of whoever is linked with it. */
GPUC_API int gpuc_c_version(void);
/* gpuc's own version, "0.1.0". */
GPUC_API const char* gpuc_version(void);

typedef enum gpuc_status { GPUC_OK = 0, GPUC_ERROR = 1 } gpuc_status;

/* What was wrong with the last call of this thread that failed: one line, valid until the next one that
 * fails; "" before. */
GPUC_API const char* gpuc_last_error(void);

/* Element types, by the numbers that plans have for them. An i1 takes a byte, 0 or 1. */
typedef enum gpuc_type {
  GPUC_F64 = 0,
  GPUC_F32 = 1,
  GPUC_F16 = 2,
  GPUC_BF16 = 3,
  GPUC_I64 = 4,
  GPUC_I32 = 5,
  GPUC_I8 = 6,
  GPUC_UI8 = 7,
  GPUC_I1 = 8
} gpuc_type;

/* A tensor in the host's memory, row-major and dense. */
typedef struct gpuc_tensor {
  const void* data;
  gpuc_type type;
  uint32_t rank;
  const int64_t* shape; /* `rank` extents; may be null for a scalar */
} gpuc_tensor;

/* For structs that begin with their size, in C and in C++20:
 * gpuc_plan_info info = GPUC_INIT(gpuc_plan_info); */
#define GPUC_INIT(type) {.size = sizeof(type)}

typedef struct gpuc_plan gpuc_plan;
typedef struct gpuc_session gpuc_session;

/* A plan; whatever it gives is valid until it is freed. Sessions that were made of it stay. Null may be
 * freed. */
GPUC_API gpuc_status gpuc_plan_load(const char* path, gpuc_plan** plan);
GPUC_API gpuc_status gpuc_plan_parse(const void* bytes, size_t size,
                                     gpuc_plan** plan); /* the bytes are copied */
GPUC_API void gpuc_plan_free(gpuc_plan* plan);

typedef struct gpuc_plan_info {
  size_t size;
  const char* name;
  const char* target; /* "host (sapphirerapids)": for what the plan was compiled */
  uint64_t arena_bytes;
  uint64_t seed;
  int64_t batch;        /* rows per rank and microbatch */
  int64_t global_batch; /* rows per update */
  size_t program_count;
  size_t variable_count;
} gpuc_plan_info;
GPUC_API gpuc_status gpuc_plan_describe(const gpuc_plan* plan, gpuc_plan_info* info);

typedef struct gpuc_program_info {
  size_t size;
  const char* name; /* train_step, eval_step, predict, init, or a function of yours */
  size_t input_count;
  size_t output_count;
  uint64_t peak_bytes;
} gpuc_program_info;
GPUC_API gpuc_status gpuc_plan_describe_program(const gpuc_plan* plan, size_t program,
                                                gpuc_program_info* info);

typedef struct gpuc_tensor_info {
  size_t size;
  const char* name;
  gpuc_type type;
  uint32_t rank;
  const int64_t* shape;
  uint64_t bytes;
  int64_t range; /* of an input: its integers lie in [0, range); -1: any */
} gpuc_tensor_info;
GPUC_API gpuc_status gpuc_plan_input(const gpuc_plan* plan, size_t program, size_t input,
                                     gpuc_tensor_info* info);
GPUC_API gpuc_status gpuc_plan_output(const gpuc_plan* plan, size_t program, size_t output,
                                      gpuc_tensor_info* info);
GPUC_API gpuc_status gpuc_plan_variable(const gpuc_plan* plan, size_t variable, gpuc_tensor_info* info);

typedef struct gpuc_session_options {
  size_t size;
  const char* device;   /* "host", "cuda", "cuda:N"; null or "auto": what the plan was compiled for */
  int threads;          /* 0: one for each core */
  const uint64_t* seed; /* instead of the plan's own; null: that */
  int strict;           /* other than 0: refuse a library of another minor version, whose bits may differ */
} gpuc_session_options;
/* `options` may be null: all zero. All memory that runs need is allocated here. */
GPUC_API gpuc_status gpuc_session_create(const gpuc_plan* plan, const gpuc_session_options* options,
                                         gpuc_session** session);
GPUC_API void gpuc_session_free(gpuc_session* session);

/* Gives all variables their first values, by the seed. */
GPUC_API gpuc_status gpuc_session_initialize(gpuc_session* session);

/* The index of the program with this name; the error names those that exist. */
GPUC_API gpuc_status gpuc_session_program(const gpuc_session* session, const char* name, size_t* program);

#define GPUC_ALL_ROWS (-1)
/* Enqueues one run of a program with its inputs, in the plan's order, which may be reused when this returns.
 * `rows`: how many rows of the batch hold samples; GPUC_ALL_ROWS: all. */
GPUC_API gpuc_status gpuc_session_run(gpuc_session* session, size_t program, const gpuc_tensor* inputs,
                                      size_t count, int32_t rows);
/* Returns when all that was enqueued is done. */
GPUC_API gpuc_status gpuc_session_wait(gpuc_session* session);

/* An output of the last run of a program, after gpuc_session_wait; `tensor` shows it until the next run of
 * any program, or until the session is freed. */
GPUC_API gpuc_status gpuc_session_output(gpuc_session* session, size_t program, size_t output,
                                         gpuc_tensor* tensor);

/* Copies a variable out or in, after gpuc_session_wait; `size` is just its bytes. */
GPUC_API gpuc_status gpuc_session_read_variable(gpuc_session* session, const char* name, void* bytes,
                                                size_t size);
GPUC_API gpuc_status gpuc_session_write_variable(gpuc_session* session, const char* name, const void* bytes,
                                                 size_t size);

/* What gpuc_session_create had to warn of, one line each: from 0 on, null behind the last. */
GPUC_API const char* gpuc_session_warning(const gpuc_session* session, size_t index);

#ifdef __cplusplus
}
#endif

#endif /* GPUC_C_H */
