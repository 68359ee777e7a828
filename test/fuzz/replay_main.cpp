// Runs a fuzz target without libFuzzer: every file of a seed corpus as it is, then seeded mutations of them.
// The same corpus and count give the same inputs everywhere, so that the ordinary test suite runs every
// fuzzer.
//
//   fuzz_NAME CORPUS-FOLDER MUTATIONS
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

namespace fs = std::filesystem;

/// Memory that ends at an unreadable page. An input is placed right before that page, so that reading one
/// byte past it is a crash.
class GuardedMemory {
 public:
  explicit GuardedMemory(size_t capacity) {
    size_t page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    size_t length = (capacity + page - 1) / page * page;
    void* memory = ::mmap(nullptr, length + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || ::mprotect(static_cast<char*>(memory) + length, page, PROT_NONE) != 0) {
      std::perror("error: cannot map guarded memory");
      std::exit(1);
    }
    end_ = static_cast<uint8_t*>(memory) + length;
  }

  const uint8_t* place(const std::string& input) {
    uint8_t* start = end_ - input.size();
    std::memcpy(start, input.data(), input.size());
    return start;
  }

 private:
  uint8_t* end_;
};

// What the signal handler needs; plain data, since a handler may call only what is async-signal-safe.
const uint8_t* current_data = nullptr;
size_t current_size = 0;
char current_label[512];
char crash_file[512];

void say(const char* text) { (void)!::write(STDERR_FILENO, text, std::strlen(text)); }

void onCrash(int signal_number) {
  say("error: the fuzz target crashed on ");
  say(current_label);
  int file = ::open(crash_file, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  if (file >= 0 && ::write(file, current_data, current_size) == static_cast<ssize_t>(current_size)) {
    say("; the input is in ");
    say(crash_file);
  }
  say("\n");
  std::signal(signal_number, SIG_DFL);
  std::raise(signal_number);
}

void run(GuardedMemory& memory, const std::string& input, const std::string& label) {
  current_data = memory.place(input);
  current_size = input.size();
  std::snprintf(current_label, sizeof current_label, "%s", label.c_str());
  LLVMFuzzerTestOneInput(current_data, current_size);
}

using Random = std::mt19937_64;

// Not std::uniform_int_distribution: its results differ between standard libraries.
size_t below(Random& random, size_t limit) { return limit == 0 ? 0 : random() % limit; }

void overwriteInteger(std::string& input, Random& random) {
  static constexpr uint64_t kEdges[] = {0,
                                        1,
                                        0x7f,
                                        0x80,
                                        0xff,
                                        0x7fff,
                                        0xffff,
                                        0x7fffffff,
                                        0x80000000,
                                        0xffffffff,
                                        0x7fffffffffffffff,
                                        0x8000000000000000,
                                        0xffffffffffffffff};
  uint64_t value = kEdges[below(random, std::size(kEdges))];
  size_t width = std::min<size_t>(size_t{1} << below(random, 4), input.size());
  std::memcpy(input.data() + below(random, input.size() - width + 1), &value, width);
}

/// One small change: a bit, a byte, an edge-case integer, a block removed, doubled or taken from another
/// seed, an end cut off.
void mutateOnce(std::string& input, const std::string& other, Random& random) {
  if (input.empty()) input = other;
  if (input.empty()) input.push_back(static_cast<char>(random()));
  size_t at = below(random, input.size());
  size_t length = 1 + below(random, std::min<size_t>(input.size() - at, 32));
  switch (below(random, 7)) {
    case 0:
      input[at] = static_cast<char>(input[at] ^ (1 << below(random, 8)));
      break;
    case 1:
      input[at] = static_cast<char>(random());
      break;
    case 2:
      overwriteInteger(input, random);
      break;
    case 3:
      input.erase(at, length);
      break;
    case 4:
      input.insert(at, std::string(input, at, length));
      break;
    case 5: {
      size_t from = below(random, other.size() + 1);
      input.insert(at, other, from, length);
      break;
    }
    case 6:
      input.resize(at);
      break;
  }
}

std::vector<fs::path> filesIn(const std::string& folder) {
  std::vector<fs::path> files;
  std::error_code missing;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, missing))
    if (entry.is_regular_file()) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "Usage: %s CORPUS-FOLDER MUTATIONS\n", argv[0]);
    return 2;
  }
  std::vector<fs::path> files = filesIn(argv[1]);
  if (files.empty()) {
    std::fprintf(stderr, "error: no seeds in %s\n", argv[1]);
    return 1;
  }
  std::snprintf(crash_file, sizeof crash_file, "crash-%s", fs::path(argv[1]).filename().c_str());
  for (int signal_number : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL}) std::signal(signal_number, onCrash);

  std::vector<std::string> seeds;
  size_t longest = 0;
  for (const fs::path& file : files) {
    seeds.push_back(contents(file));
    longest = std::max(longest, seeds.back().size());
  }
  constexpr size_t kMutationsPerInput = 8;
  GuardedMemory memory(longest + kMutationsPerInput * (longest + 32) + 1);
  for (size_t i = 0; i < seeds.size(); ++i) run(memory, seeds[i], files[i].filename().string());

  Random random(1);
  long count = std::strtol(argv[2], nullptr, 10);
  for (long k = 0; k < count; ++k) {
    size_t base = below(random, seeds.size());
    std::string input = seeds[base];
    size_t changes = 1 + below(random, kMutationsPerInput);
    for (size_t change = 0; change < changes; ++change)
      mutateOnce(input, seeds[below(random, seeds.size())], random);
    run(memory, input, files[base].filename().string() + ", mutation " + std::to_string(k));
  }
  std::printf("%zu seeds and %ld mutations\n", seeds.size(), count);
  return 0;
}
