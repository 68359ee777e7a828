// gpuc-place-buffers as a user calls it: files, pipes, exit codes, messages, nothing left behind.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "runtime/base/file.h"
#include "runtime/base/version.h"

namespace gpuc {
namespace {

namespace fs = std::filesystem;

class PlaceBuffersTool : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "gpuc-place-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  /// Runs the tool in the test's folder; keeps what it prints in `out` and `err`.
  int run(const std::string& arguments) {
    std::string command =
        "cd '" + folder_.string() + "' && " GPUC_PLACE_BUFFERS " " + arguments + " >.out 2>.err";
    int status = std::system(command.c_str());
    out = *readFile((folder_ / ".out").string());
    err = *readFile((folder_ / ".err").string());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  void write(const char* name, const char* text) {
    ASSERT_TRUE(writeFileAtomically((folder_ / name).string(), text).ok());
  }

  std::string out, err;
  fs::path folder_;
};

TEST_F(PlaceBuffersTool, AddsOffsets) {
  write("p.csv", "id,lower,upper,size\na,0,2,10\nb,2,4,10\n");
  EXPECT_EQ(run("--input=p.csv --output=q.csv"), 0) << err;
  EXPECT_EQ(out + err, "");
  EXPECT_EQ(*readFile((folder_ / "q.csv").string()), "id,lower,upper,size,offset\na,0,2,10,0\nb,2,4,10,0\n");
}

TEST_F(PlaceBuffersTool, ReadsAndWritesPipes) {
  write("p.csv", "id,lower,upper,size\na,0,2,10\n");
  EXPECT_EQ(run("--input - --output - < p.csv"), 0) << err;
  EXPECT_EQ(out, "id,lower,upper,size,offset\na,0,2,10,0\n");
}

TEST_F(PlaceBuffersTool, WhatDoesNotFitExitsWithOneAndWritesNothing) {
  write("p.csv", "id,lower,upper,size\na,0,3,10\nb,2,4,10\n");
  write("q.csv", "old");
  EXPECT_EQ(run("--input=p.csv --output=q.csv --capacity=19"), 1);
  EXPECT_EQ(err,
            "error: p.csv: the buffers do not fit: height 20 reached, capacity 19, lower bound 20; "
            "alive at the peak (time 2): a (10), b (10)\n");
  EXPECT_EQ(*readFile((folder_ / "q.csv").string()), "old");
  EXPECT_EQ(run("--input=p.csv --output=q.csv --capacity=20 --time-limit=0.5"), 0) << err;
}

TEST_F(PlaceBuffersTool, SaysThatTheTimeLimitEndedTheSearch) {
  std::string text = "id,lower,upper,size\n";
  for (int i = 0; i < 3000; ++i)
    text += "b" + std::to_string(i) + "," + std::to_string(i * 7 % 1000) + "," +
            std::to_string(i * 7 % 1000 + i % 90 + 1) + "," + std::to_string(i % 97 + 1) + "\n";
  write("p.csv", text.c_str());
  EXPECT_EQ(run("--input=p.csv --output=q.csv --time-limit=0"), 0) << err;
  EXPECT_TRUE(err.starts_with("warning: the time limit ended the search at the height ")) << err;
  EXPECT_NE(err.find("a longer --time-limit may find a lower one\n"), std::string::npos) << err;
  EXPECT_TRUE(fs::exists(folder_ / "q.csv"));
  EXPECT_EQ(run("--input=p.csv --output=r.csv --time-limit=0 --capacity=100"), 1);
  EXPECT_EQ(err.find('\n'), err.size() - 1) << err;
  EXPECT_FALSE(fs::exists(folder_ / "r.csv"));
}

TEST_F(PlaceBuffersTool, ErrorsInFilesExitWithOne) {
  EXPECT_EQ(run("--input=none.csv --output=q.csv"), 1);
  EXPECT_EQ(err, "error: cannot open none.csv: No such file or directory\n");
  write("p.csv", "id,lower,upper,size\na,0,3,ten\n");
  EXPECT_EQ(run("--input=p.csv --output=q.csv"), 1);
  EXPECT_EQ(err, "error: p.csv:2: size: 'ten' is not an integer\n");
  EXPECT_EQ(run("--input=- --output=q.csv < p.csv"), 1);
  EXPECT_EQ(err, "error: stdin:2: size: 'ten' is not an integer\n");
  EXPECT_FALSE(fs::exists(folder_ / "q.csv"));
}

TEST_F(PlaceBuffersTool, ErrorsInArgumentsExitWithTwo) {
  EXPECT_EQ(run("--output=q.csv"), 2);
  EXPECT_EQ(err, "error: missing argument: --input=FILE\n");
  EXPECT_EQ(run("--input=p --output=q --capcity=3"), 2);
  EXPECT_EQ(err, "error: unknown flag --capcity; did you mean --capacity?\n");
  EXPECT_EQ(run("--input=p --output=q --capacity=-3"), 2);
  EXPECT_EQ(run("--input=p --output=q --time-limit=-1"), 2);
  EXPECT_EQ(err, "error: --time-limit: -1 is less than 0\n");
}

TEST_F(PlaceBuffersTool, HelpAndVersion) {
  EXPECT_EQ(run("--version"), 0);
  EXPECT_EQ(out, "gpuc-place-buffers " GPUC_VERSION "\n");
  EXPECT_EQ(run("--help"), 0);
  EXPECT_NE(out.find("--capacity=SIZE"), std::string::npos) << out;
}

}  // namespace
}  // namespace gpuc
