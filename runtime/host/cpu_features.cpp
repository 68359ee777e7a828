#include "runtime/host/cpu_features.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <array>
#include <cstdint>
#include <cstring>

namespace gpuc {

#if defined(__x86_64__)
namespace {

enum Register : uint8_t { eax, ebx, ecx, edx };

/// Which registers the system must save for the feature to be usable: bits of XCR0.
enum State : uint32_t { none = 0, avx = 0x6, avx512 = 0xe6, amx = 0x60000, apx = 0x80000 };

struct Feature {
  std::string_view name;
  uint32_t leaf;
  uint32_t subleaf;
  Register in;
  uint8_t bit;
  State state = none;
};

// Intel's and AMD's manuals, CPUID; names as in LLVM's X86 target.
constexpr Feature kFeatures[] = {
    {"cx8", 1, 0, edx, 8},
    {"cmov", 1, 0, edx, 15},
    {"mmx", 1, 0, edx, 23},
    {"fxsr", 1, 0, edx, 24},
    {"sse", 1, 0, edx, 25},
    {"sse2", 1, 0, edx, 26},
    {"sse3", 1, 0, ecx, 0},
    {"pclmul", 1, 0, ecx, 1},
    {"ssse3", 1, 0, ecx, 9},
    {"fma", 1, 0, ecx, 12, avx},
    {"cx16", 1, 0, ecx, 13},
    {"sse4.1", 1, 0, ecx, 19},
    {"sse4.2", 1, 0, ecx, 20},
    {"crc32", 1, 0, ecx, 20},
    {"movbe", 1, 0, ecx, 22},
    {"popcnt", 1, 0, ecx, 23},
    {"aes", 1, 0, ecx, 25},
    {"xsave", 1, 0, ecx, 27},
    {"avx", 1, 0, ecx, 28, avx},
    {"f16c", 1, 0, ecx, 29, avx},
    {"rdrnd", 1, 0, ecx, 30},
    {"fsgsbase", 7, 0, ebx, 0},
    {"sgx", 7, 0, ebx, 2},
    {"bmi", 7, 0, ebx, 3},
    {"avx2", 7, 0, ebx, 5, avx},
    {"bmi2", 7, 0, ebx, 8},
    {"invpcid", 7, 0, ebx, 10},
    {"rtm", 7, 0, ebx, 11},
    {"avx512f", 7, 0, ebx, 16, avx512},
    {"avx512dq", 7, 0, ebx, 17, avx512},
    {"rdseed", 7, 0, ebx, 18},
    {"adx", 7, 0, ebx, 19},
    {"avx512ifma", 7, 0, ebx, 21, avx512},
    {"clflushopt", 7, 0, ebx, 23},
    {"clwb", 7, 0, ebx, 24},
    {"avx512cd", 7, 0, ebx, 28, avx512},
    {"sha", 7, 0, ebx, 29},
    {"avx512bw", 7, 0, ebx, 30, avx512},
    {"avx512vl", 7, 0, ebx, 31, avx512},
    {"avx512vbmi", 7, 0, ecx, 1, avx512},
    {"pku", 7, 0, ecx, 4},
    {"waitpkg", 7, 0, ecx, 5},
    {"avx512vbmi2", 7, 0, ecx, 6, avx512},
    {"shstk", 7, 0, ecx, 7},
    {"gfni", 7, 0, ecx, 8},
    {"vaes", 7, 0, ecx, 9, avx},
    {"vpclmulqdq", 7, 0, ecx, 10, avx},
    {"avx512vnni", 7, 0, ecx, 11, avx512},
    {"avx512bitalg", 7, 0, ecx, 12, avx512},
    {"avx512vpopcntdq", 7, 0, ecx, 14, avx512},
    {"rdpid", 7, 0, ecx, 22},
    {"kl", 7, 0, ecx, 23},
    {"cldemote", 7, 0, ecx, 25},
    {"movdiri", 7, 0, ecx, 27},
    {"movdir64b", 7, 0, ecx, 28},
    {"enqcmd", 7, 0, ecx, 29},
    {"uintr", 7, 0, edx, 5},
    {"avx512vp2intersect", 7, 0, edx, 8, avx512},
    {"serialize", 7, 0, edx, 14},
    {"tsxldtrk", 7, 0, edx, 16},
    {"pconfig", 7, 0, edx, 18},
    {"amx-bf16", 7, 0, edx, 22, amx},
    {"avx512fp16", 7, 0, edx, 23, avx512},
    {"amx-tile", 7, 0, edx, 24, amx},
    {"amx-int8", 7, 0, edx, 25, amx},
    {"sha512", 7, 1, eax, 0},
    {"sm3", 7, 1, eax, 1},
    {"sm4", 7, 1, eax, 2},
    {"raoint", 7, 1, eax, 3},
    {"avxvnni", 7, 1, eax, 4, avx},
    {"avx512bf16", 7, 1, eax, 5, avx512},
    {"cmpccxadd", 7, 1, eax, 7},
    {"amx-fp16", 7, 1, eax, 21, amx},
    {"hreset", 7, 1, eax, 22},
    {"avxifma", 7, 1, eax, 23, avx},
    {"movrs", 7, 1, eax, 31},
    {"avxvnniint8", 7, 1, edx, 4, avx},
    {"avxneconvert", 7, 1, edx, 5, avx},
    {"amx-complex", 7, 1, edx, 8, amx},
    {"avxvnniint16", 7, 1, edx, 10, avx},
    {"prefetchi", 7, 1, edx, 14},
    {"usermsr", 7, 1, edx, 15},
    {"avx10.1", 7, 1, edx, 19, avx512},
    {"avx10.1-256", 7, 1, edx, 19, avx512},
    {"avx10.1-512", 7, 1, edx, 19, avx512},
    // APX is one bit; LLVM names its parts.
    {"egpr", 7, 1, edx, 21, apx},
    {"push2pop2", 7, 1, edx, 21, apx},
    {"ppx", 7, 1, edx, 21, apx},
    {"ndd", 7, 1, edx, 21, apx},
    {"ccmp", 7, 1, edx, 21, apx},
    {"nf", 7, 1, edx, 21, apx},
    {"cf", 7, 1, edx, 21, apx},
    {"zu", 7, 1, edx, 21, apx},
    {"xsaveopt", 0xd, 1, eax, 0},
    {"xsavec", 0xd, 1, eax, 1},
    {"xsaves", 0xd, 1, eax, 3},
    {"ptwrite", 0x14, 0, ebx, 4},
    {"widekl", 0x19, 0, ebx, 2},
    {"amx-fp8", 0x1e, 1, eax, 4, amx},
    {"amx-transpose", 0x1e, 1, eax, 5, amx},
    {"amx-tf32", 0x1e, 1, eax, 6, amx},
    {"amx-avx512", 0x1e, 1, eax, 7, amx},
    {"amx-movrs", 0x1e, 1, eax, 8, amx},
    {"sahf", 0x80000001, 0, ecx, 0},
    {"lzcnt", 0x80000001, 0, ecx, 5},
    {"sse4a", 0x80000001, 0, ecx, 6},
    {"prfchw", 0x80000001, 0, ecx, 8},
    {"xop", 0x80000001, 0, ecx, 11, avx},
    {"lwp", 0x80000001, 0, ecx, 15},
    {"fma4", 0x80000001, 0, ecx, 16, avx},
    {"tbm", 0x80000001, 0, ecx, 21},
    {"mwaitx", 0x80000001, 0, ecx, 29},
    {"64bit", 0x80000001, 0, edx, 29},
    {"clzero", 0x80000008, 0, ebx, 0},
    {"rdpru", 0x80000008, 0, ebx, 4},
    {"wbnoinvd", 0x80000008, 0, ebx, 9},
};

/// The registers that the system saves when it switches threads: XCR0, or 0 if it does not say.
uint32_t savedStates() {
  uint32_t a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d) || (c & (1u << 27)) == 0) return 0;
  uint32_t low, high;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

bool has(const Feature& feature) {
  std::array<uint32_t, 4> registers = {};
  if (!__get_cpuid_count(feature.leaf, feature.subleaf, &registers[eax], &registers[ebx], &registers[ecx],
                         &registers[edx]))
    return false;
  return ((registers[feature.in] >> feature.bit) & 1) != 0 &&
         (savedStates() & feature.state) == feature.state;
}

/// The version of AVX10, in the low byte of EBX of its leaf; 0 without it.
uint32_t avx10Version() {
  std::array<uint32_t, 4> registers = {};
  if (!cpuHasFeature("avx10.1") ||
      !__get_cpuid_count(0x24, 0, &registers[eax], &registers[ebx], &registers[ecx], &registers[edx]))
    return 0;
  return registers[ebx] & 0xff;
}

}  // namespace

std::string cpuName() {
  std::array<uint32_t, 13> words = {};
  for (uint32_t leaf = 0; leaf < 3; ++leaf)
    if (!__get_cpuid(0x80000002 + leaf, &words[leaf * 4], &words[leaf * 4 + 1], &words[leaf * 4 + 2],
                     &words[leaf * 4 + 3]))
      return "an unnamed x86-64 CPU";
  std::string name(reinterpret_cast<const char*>(words.data()));
  size_t first = name.find_first_not_of(' ');
  return first == std::string::npos ? "an unnamed x86-64 CPU" : name.substr(first);
}

bool cpuHasFeature(std::string_view name) {
  for (const Feature& feature : kFeatures)
    if (feature.name == name) return has(feature);
  return name == "avx10.2" && avx10Version() >= 2;
}

#else

std::string cpuName() { return "a CPU that is not x86-64"; }

bool cpuHasFeature(std::string_view) { return false; }

#endif

Status checkCpuFeatures(const std::string& target, const std::vector<std::string>& features) {
  std::string missing;
  for (const std::string& feature : features) {
    // LLVM writes the features of a function with a sign.
    std::string_view name(feature);
    if (!name.empty() && name[0] == '+') name.remove_prefix(1);
    if (!cpuHasFeature(name)) missing += (missing.empty() ? "" : ", ") + std::string(name);
  }
  if (missing.empty()) return okStatus();
  return Status::error("plan compiled for " + target + " needs CPU features that this machine lacks: " +
                       missing + "; it is " + cpuName() + ": compile with --target=host here");
}

}  // namespace gpuc
