// A folder that goes when the test ends.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

namespace gpuc {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "gpuc-test-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

  /// Writes a file and gives its path.
  std::string write(const std::string& name, std::string_view bytes) const {
    std::ofstream(*this / name, std::ios::binary) << bytes;
    return *this / name;
  }

 private:
  std::string path_;
};

inline std::string fileBytes(const std::string& path) {
  std::ostringstream bytes;
  bytes << std::ifstream(path, std::ios::binary).rdbuf();
  return bytes.str();
}

/// Asserts that a Status or Result is an error of one line that contains `part`.
template <typename T>
void expectError(const T& outcome, const std::string& part) {
  ASSERT_FALSE(outcome.ok()) << "expected an error with: " << part;
  EXPECT_NE(outcome.message().find(part), std::string::npos)
      << "message: " << outcome.message() << "\nexpected part: " << part;
  EXPECT_EQ(outcome.message().find('\n'), std::string::npos) << outcome.message();
}

}  // namespace gpuc
