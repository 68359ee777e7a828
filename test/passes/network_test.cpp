//===- network_test.cpp - Machines of devices, and what joins them --------------===//

#include "passes/cost/Network.h"

#include <gtest/gtest.h>

namespace gpuc {
namespace {

const Link kLink = {"", /*bytesPerNanosecond=*/2, /*latencyNanoseconds=*/100};

TEST(Network, ARingPassesAllButOneShareOnTwice) {
  EXPECT_EQ(ringNanoseconds(kLink, 4000, 1), 0);
  EXPECT_EQ(ringNanoseconds(kLink, 4000, 2), 2 * (100 + 1000));
  EXPECT_EQ(ringNanoseconds(kLink, 4000, 8), 14 * (100 + 250));
}

TEST(Network, ATreeHasTheLatencyOfItsLevels) {
  EXPECT_EQ(treeNanoseconds(kLink, 4000, 1), 0);
  EXPECT_EQ(treeNanoseconds(kLink, 4000, 2), 2 * (100 + 2000));
  EXPECT_EQ(treeNanoseconds(kLink, 4000, 8), 2 * (300 + 2000));
  EXPECT_EQ(treeNanoseconds(kLink, 4000, 9), 2 * (400 + 2000));
}

TEST(Network, MachinesExchangeAShareForEachDevice) {
  const Network network = {.within = {"", 20, 10}, .between = kLink, .devicesPerMachine = 4};
  EXPECT_EQ(network.allReduceNanoseconds(4000, 1), 0);
  EXPECT_EQ(network.allReduceNanoseconds(4000, 2), network.within.allReduceNanoseconds(4000, 2));
  const double within = network.within.allReduceNanoseconds(4000, 4);
  EXPECT_EQ(network.allReduceNanoseconds(4000, 4), within);
  // Two machines: 1000 bytes of each device, as a ring.
  EXPECT_EQ(network.allReduceNanoseconds(4000, 8), within + 2 * (100 + 250));
  // 64 machines: a ring would have the latency of 126 messages, a tree that of 12.
  EXPECT_EQ(network.allReduceNanoseconds(4000, 256), within + 2 * (600 + 500));
  // Of many bytes a ring is faster: a tree passes all of them on, a ring but 63 of 64 shares.
  EXPECT_EQ(network.allReduceNanoseconds(40'000'000, 256),
            network.within.allReduceNanoseconds(40'000'000, 4) + 126 * (100 + 10'000'000 / 64. / 2));
}

TEST(Network, ComesToOneLink) {
  const Network network = {.within = {"nvlink", 20, 10}, .between = kLink, .devicesPerMachine = 4};
  EXPECT_EQ(network.asOneLink(4).latencyNanoseconds, 10);
  for (int64_t ranks : {8, 256}) {
    const Link link = network.asOneLink(ranks);
    EXPECT_EQ(link.name, "nvlink");
    EXPECT_EQ(link.allReduceNanoseconds(0), network.allReduceNanoseconds(0, ranks)) << ranks;
    EXPECT_NEAR(link.allReduceNanoseconds(256 << 20) / network.allReduceNanoseconds(256 << 20, ranks), 1,
                1e-5)
        << ranks;
  }
}

TEST(Network, HasWholeMachines) {
  const Network network = {.within = kLink, .between = kLink, .devicesPerMachine = 8};
  for (int64_t ranks : {1, 3, 8, 16, 4096})
    EXPECT_TRUE(network.checkFilledBy(ranks).ok()) << ranks;
  EXPECT_EQ(network.checkFilledBy(12).message(),
            "12 ranks do not fill machines of 8 devices: name a multiple of 8, or other machines with "
            "--devices-per-machine");
  EXPECT_EQ(network.machinesOf(3), 1);
  EXPECT_EQ(network.machinesOf(4096), 512);
}

} // namespace
} // namespace gpuc
