// Machine code where systems are strict: no page that is writable and executable, no file in memory, no
// folder to write to. Each case is a process of its own, which first takes the rights from itself.
#include "runtime/host/code_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <functional>

#include "runtime/host/matmul/micro_kernel.h"
#include "runtime/tooling/allocation_hook.h"
#include "test/runtime/session_helpers.h"
#include "test/runtime/temporary_folder.h"

namespace gpuc::test {
namespace {

using Filter = std::vector<sock_filter>;

/// For an error: ends the process.
constexpr uint32_t kEnd = UINT32_MAX;

/// Of a system call whose argument has all of these bits, the error.
struct Refusal {
  uint32_t call;
  uint32_t argument;
  uint32_t bits;
  uint32_t error;
};

/// From here on the process gets these errors. False where the system has no such filters.
bool refuse(const std::vector<Refusal>& refusals) {
  Filter filter;
  for (const Refusal& refusal : refusals) {
    const uint32_t argument = offsetof(seccomp_data, args) + 8 * refusal.argument;
    filter.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)));
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, refusal.call, 0, 4));
    filter.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, argument));
    filter.push_back(BPF_STMT(BPF_ALU | BPF_AND | BPF_K, refusal.bits));
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, refusal.bits, 0, 1));
    const uint32_t answer =
        refusal.error == kEnd ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ERRNO | refusal.error;
    filter.push_back(BPF_STMT(BPF_RET | BPF_K, answer));
  }
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  const sock_fprog program = {static_cast<unsigned short>(filter.size()), filter.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

constexpr uint32_t kWritableAndExecutable = PROT_WRITE | PROT_EXEC;
const std::vector<Refusal> kStrict = {{SYS_mmap, 2, kWritableAndExecutable, EACCES},
                                      {SYS_mprotect, 2, PROT_EXEC, EACCES}};
const Refusal kNoFileInMemory = {SYS_memfd_create, 1, 0, ENOSYS};
const Refusal kNoNamelessFile = {SYS_openat, 2, O_TMPFILE, EOPNOTSUPP};
const Refusal kNoPagesOnceWritten = {SYS_mprotect, 2, PROT_EXEC, EACCES};

constexpr int kSkipped = 77;

/// What `act` returns in a process of its own, after `restrict` has held there; -signal if that ended it.
int inAProcess(const std::function<bool()>& restrict, const std::function<int()>& act) {
  const pid_t child = fork();
  if (child == 0) _exit(restrict() ? act() : kSkipped);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

int said(const std::string& message) {
  std::fprintf(stderr, "%s\n", message.c_str());
  return 1;
}

/// A plan's own kernels, and a matmul's: h = ones(4, 16) x 0.5(16, 16) = 8, y = 2 h.
int trainAStep() {
  Result<Session> session = Session::create(everythingPlan().parse(), {.threads = 1});
  if (!session.ok()) return said(session.message());
  std::vector<float> ones(64, 1.0f);
  const int64_t shape[] = {4, 16};
  HostTensorView x = viewOf(ones, DataType::f32, shape);
  Result<ProgramId> step = session->program("train_step");
  if (!session->initialize().ok() || !step.ok() || !session->run(*step, {&x, 1}).ok())
    return said("does not run");
  return valuesOf<float>(session->output(*step, 0)) == std::vector<float>(64, 16.0f) ? 0
                                                                                     : said("wrong numbers");
}

/// An error that holds all of `parts`, on one line.
int refusedWith(const Status& status, std::initializer_list<const char*> parts) {
  if (status.ok()) return said("no error");
  for (const char* part : parts)
    if (status.message().find(part) == std::string::npos) return said(status.message());
  return 0;
}

Status multiplyOnce() {
  Result<MicroKernel> kernel = makeMicroKernel({DataType::f32, 2, 16, 3, 3, 16, 16, false, false});
  if (!kernel.ok()) return kernel.status();
  std::vector<float> a(6, 2.0f), b(48, 3.0f), c(32, 0.0f);
  (*kernel)(b.data(), a.data(), c.data());
  return c == std::vector<float>(32, 18.0f) ? okStatus() : errorf("wrong numbers");
}

void expectZero(int code) {
  if (code == kSkipped) GTEST_SKIP() << "this system takes no such rights away";
  EXPECT_EQ(code, 0);
}

/// Sanitizers map memory as they like, and start no threads behind fork().
class CodeMemory : public testing::Test {
 protected:
  void SetUp() override {
#ifdef GPUC_SANITIZER_OWNS_MALLOC
    GTEST_SKIP() << "under a sanitizer";
#endif
  }
};

TEST_F(CodeMemory, RunsWhereWrittenPagesAreNeverExecuted) {
  constexpr int kMemoryDenyWriteExecute = 65;
  expectZero(inAProcess([] { return prctl(kMemoryDenyWriteExecute, 1, 0, 0, 0) == 0; }, trainAStep));
  expectZero(inAProcess([] { return refuse(kStrict); }, trainAStep));
}

TEST_F(CodeMemory, RunsFromAFolderWhereThereIsNoFileInMemory) {
  TemporaryFolder folder;
  for (const char* chosen : {folder.path().c_str(), "/nowhere/at/all"})
    expectZero(inAProcess(
        [&] {
          setenv("TMPDIR", chosen, 1);
          return refuse({kStrict[0], kStrict[1], kNoFileInMemory});
        },
        trainAStep));
}

TEST_F(CodeMemory, MakesNoFileThatHasAName) {
  expectZero(inAProcess([] { return refuse({{SYS_openat, 2, O_CREAT, kEnd}, {SYS_open, 1, O_CREAT, kEnd}}); },
                        [] {
                          const int code = trainAStep();
                          return code == 0 && multiplyOnce().ok() ? 0 : 1;
                        }));
}

TEST_F(CodeMemory, KeepsProductsInPagesOfTheirOwnWithoutAnyFile) {
  const auto restrict = [] {
    setenv("TMPDIR", "/nowhere/at/all", 1);
    return refuse({kNoFileInMemory, kNoNamelessFile});
  };
  expectZero(inAProcess(restrict, [] {
    const Status status = multiplyOnce();
    return status.ok() ? 0 : said(status.message());
  }));
  expectZero(inAProcess(restrict, [] {
    Result<Session> session = Session::create(everythingPlan().parse(), {.threads = 1});
    return refusedWith(session.status(), {"no file that machine code may be mapped from (memfd_create: ",
                                          "/nowhere/at/all: ", "set TMPDIR to a folder"});
  }));
}

TEST_F(CodeMemory, SaysWhatTheSystemRefuses) {
  expectZero(inAProcess([] { return refuse({kNoFileInMemory, kNoNamelessFile, kNoPagesOnceWritten}); },
                        [] {
                          return refusedWith(multiplyOnce(),
                                             {"memfd_create: Function not implemented",
                                              "/tmp: ", "nor may pages that were written be executed: "});
                        }));
}

TEST_F(CodeMemory, MindsTheLimitOfFiles) {
  const auto restrict = [] {
    const rlimit limit = {5000, 5000};
    return setrlimit(RLIMIT_FSIZE, &limit) == 0;
  };
  expectZero(inAProcess(restrict, [] { return multiplyOnce().ok() ? 0 : 1; }));
  expectZero(inAProcess(restrict, [] {
    Result<Session> session = Session::create(everythingPlan().parse(), {.threads = 1});
    return refusedWith(session.status(), {"files may have 5000 bytes here", "raise ulimit -f"});
  }));
}

TEST_F(CodeMemory, ManyPiecesStayWhereTheyAre) {
  std::vector<const void*> kept;
  std::vector<uint8_t> code;
  for (int i = 0; i < 3000; ++i) {
    code.assign(static_cast<size_t>(1 + i * 7 % 5000), static_cast<uint8_t>(i));
    Result<const void*> place = keepCode(code);
    ASSERT_TRUE(place.ok()) << place.message();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(*place) % 64, 0u);
    kept.push_back(*place);
  }
  for (int i = 0; i < 3000; ++i) {
    const auto* bytes = static_cast<const uint8_t*>(kept[static_cast<size_t>(i)]);
    ASSERT_EQ(bytes[0], static_cast<uint8_t>(i));
    ASSERT_EQ(bytes[i * 7 % 5000], static_cast<uint8_t>(i));
  }
}

}  // namespace
}  // namespace gpuc::test
