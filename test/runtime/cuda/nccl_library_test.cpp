// The installed NCCL, as far as it can be asked without a GPU: it has what the runtime calls, by the names
// that the header gives it.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>

#include "runtime/cuda/nccl.h"

namespace gpuc::cuda {
namespace {

TEST(NcclLibrary, HasWhatTheRuntimeCalls) {
  Result<const Nccl*> nccl = Nccl::get();
  if (!nccl.ok() && nccl.message().find("cannot open shared object file") != std::string::npos) {
    EXPECT_NE(nccl.message().find("libnccl.so.2"), std::string::npos) << nccl.message();
    EXPECT_NE(nccl.message().find("(install NCCL 2, or name its folder in LD_LIBRARY_PATH)"),
              std::string::npos);
    GTEST_SKIP() << nccl.message();
  }
  ASSERT_TRUE(nccl.ok()) << nccl.message();
  EXPECT_EQ((*nccl)->version().rfind("2.", 0), 0u) << (*nccl)->version();
  std::printf("NCCL %s, built for %d.%d\n", (*nccl)->version().c_str(), NCCL_MAJOR, NCCL_MINOR);
}

TEST(NcclLibrary, SaysWhatItMeans) {
  Result<const Nccl*> nccl = Nccl::get();
  if (!nccl.ok()) GTEST_SKIP() << nccl.message();
  EXPECT_TRUE((*nccl)->check(ncclSuccess, "ncclAllReduce").ok());
  EXPECT_TRUE((*nccl)->check(ncclInProgress, "ncclAllReduce").ok());
  const std::string remote = (*nccl)->check(ncclRemoteError, "ncclAllReduce").message();
  EXPECT_EQ(remote.rfind("ncclAllReduce: remote process exited or there was a network error", 0), 0u)
      << remote;
  EXPECT_NE(remote.find(": another rank has ended, or the network is down"), std::string::npos) << remote;
}

/// Two ids are two worlds.
TEST(NcclLibrary, GivesUniqueIds) {
  Result<const Nccl*> nccl = Nccl::get();
  if (!nccl.ok()) GTEST_SKIP() << nccl.message();
  ncclUniqueId one = {}, other = {};
  const Status first = (*nccl)->check((*nccl)->ncclGetUniqueId(&one), "ncclGetUniqueId");
  if (!first.ok()) GTEST_SKIP() << first.message();  // a machine without a network interface
  ASSERT_EQ((*nccl)->ncclGetUniqueId(&other), ncclSuccess);
  EXPECT_NE(std::memcmp(&one, &other, sizeof(one)), 0);
}

/// Without a driver a communicator is not made, and says so instead of waiting.
TEST(NcclLibrary, MakesNoCommunicatorWithoutAGpu) {
  Result<const Nccl*> nccl = Nccl::get();
  if (!nccl.ok()) GTEST_SKIP() << nccl.message();
  if (::dlopen("libcuda.so.1", RTLD_NOW)) GTEST_SKIP() << "there is a driver";
  ncclUniqueId id = {};
  if ((*nccl)->ncclGetUniqueId(&id) != ncclSuccess) GTEST_SKIP() << "no network interface";
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclComm_t comm = nullptr;
  EXPECT_FALSE(
      (*nccl)
          ->check((*nccl)->ncclCommInitRankConfig(&comm, 1, id, 0, &config), "ncclCommInitRankConfig")
          .ok());
}

}  // namespace
}  // namespace gpuc::cuda
