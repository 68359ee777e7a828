// What a tool is to write is looked at before it does anything: by whatever name, nothing that is read is
// lost.
#include "runtime/base/output_files.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "test/runtime/temporary_folder.h"

namespace gpuc {
namespace {

using Paths = std::vector<std::string>;

std::string errorOf(const Paths& outputs, const Paths& inputs = {}) {
  return checkOutputFiles(outputs, inputs).message();
}

class OutputFiles : public ::testing::Test {
 protected:
  void SetUp() override { folder_.write("model", "read"); }

  TemporaryFolder folder_;
  std::string model_ = folder_ / "model";
};

TEST_F(OutputFiles, TakesNewNamesOldFilesAndFlagsThatWereNotGiven) {
  folder_.write("old", "replaced");
  EXPECT_TRUE(checkOutputFiles(Paths{folder_ / "new", folder_ / "old", "", ""}, Paths{model_, ""}).ok());
  EXPECT_FALSE(std::filesystem::exists(folder_ / "new"));
}

TEST_F(OutputFiles, NeedsAFolderAndAFileInIt) {
  EXPECT_EQ(errorOf({folder_ / "none/x"}),
            "cannot write " + folder_ / "none/x" + ": " + folder_ / "none" + " is not a folder");
  EXPECT_EQ(errorOf({model_ + "/x"}), "cannot write " + model_ + "/x: " + model_ + " is not a folder");
  EXPECT_EQ(errorOf({folder_.path()}), "cannot write " + folder_.path() + ": it is a folder");
}

TEST_F(OutputFiles, AreNotWhatIsRead) {
  std::filesystem::create_symlink(model_, folder_ / "link");
  std::filesystem::create_hard_link(model_, folder_ / "twin");
  for (const char* name : {"model", "./model", "link", "twin", "../"}) {
    std::string path = folder_ / name;
    if (path.ends_with("../")) path += std::filesystem::path(folder_.path()).filename().string() + "/model";
    EXPECT_EQ(errorOf({path}, {"-", model_}),
              "cannot write " + path + ": it is read, too; give the output another name");
  }
}

// Pictures are read from the folders of a folder; a folder that is made there would be a class of its own.
TEST_F(OutputFiles, AreNotInTheFoldersOfAFolderThatIsRead) {
  std::filesystem::create_directories(folder_ / "images/cat");
  std::filesystem::create_directory_symlink(folder_ / "images", folder_ / "link");
  Paths inputs{folder_ / "images"};
  for (const char* name : {"images/cat/1.png", "images/cat/new", "link/cat/1.png"})
    EXPECT_EQ(errorOf({folder_ / name}, inputs),
              "cannot write " + folder_ / name + ": it is read, too; give the output another name");
  EXPECT_FALSE(checkOutputsApart(Paths{folder_ / "images/run/latest"}, inputs).ok());
  EXPECT_TRUE(checkOutputFiles(Paths{folder_ / "images/weights", folder_ / "imagesque"}, inputs).ok());
}

TEST_F(OutputFiles, AreNotWrittenTwice) {
  std::string path = folder_ / "new";
  EXPECT_EQ(errorOf({path, folder_ / "./new"}),
            "cannot write " + folder_ / "./new" + ": two outputs go there; give each its own");
  EXPECT_EQ(errorOf({"not there yet", "./not there yet"}),
            "cannot write ./not there yet: two outputs go there; give each its own")
      << "in the working folder";
  std::filesystem::create_symlink("new", folder_ / "link");
  std::filesystem::create_symlink(folder_ / "link", folder_ / "link2");
  std::filesystem::create_symlink("itself", folder_ / "itself");
  EXPECT_EQ(errorOf({path, folder_ / "link2"}),
            "cannot write " + folder_ / "link2" + ": two outputs go there; give each its own")
      << "what the link leads to is not there yet";
  EXPECT_TRUE(checkOutputFiles(Paths{path, folder_ / "itself"}, {}).ok());
  EXPECT_EQ(errorOf({"-", "", "-"}), "cannot write stdout: two outputs go there; give each its own");
}

// A folder that a tool makes before it writes: after hours of training the weights would find it in their
// place.
TEST_F(OutputFiles, AreNotEachOthersFolders) {
  for (const auto& [folder, file] : {std::pair("run", "run/latest"), {"./run", "run/a/latest"}}) {
    const std::string error = "cannot write " + folder_ / folder + ": it is to be a folder, for " +
                              folder_ / file + "; give each its own";
    EXPECT_EQ(checkOutputsApart(Paths{folder_ / folder, folder_ / file}, {}).message(), error);
    EXPECT_EQ(checkOutputsApart(Paths{folder_ / file, "", folder_ / folder}, {}).message(), error);
  }
  EXPECT_TRUE(checkOutputsApart(Paths{folder_ / "run", folder_ / "running/latest", "-"}, {}).ok());
}

TEST_F(OutputFiles, MayBeStdoutWhereTheInputIsStdinAndADeviceManyTimes) {
  EXPECT_TRUE(checkOutputFiles(Paths{"-", "/dev/null", "/dev/null"}, Paths{"-"}).ok());
}

}  // namespace
}  // namespace gpuc
