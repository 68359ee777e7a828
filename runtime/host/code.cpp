#include "runtime/host/code.h"

#include <elf.h>
#include <link.h>

#include <cstring>

#include "runtime/host/code_memory.h"

namespace gpuc {
namespace {

#if defined(__x86_64__)
constexpr uint16_t kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr uint16_t kMachine = EM_AARCH64;
#else
constexpr uint16_t kMachine = EM_NONE;
#endif

Status checkElf(std::span<const uint8_t> object) {
  Elf64_Ehdr header;
  if (object.size() < sizeof(header) || std::memcmp(object.data(), ELFMAG, SELFMAG) != 0)
    return errorf("the plan's code is not an ELF object");
  std::memcpy(&header, object.data(), sizeof(header));
  if (header.e_type != ET_DYN || header.e_machine != kMachine)
    return errorf(
        "the plan's code is an ELF object of type %d for machine %d, expected %d for %d: "
        "compile it for this machine",
        header.e_type, header.e_machine, ET_DYN, kMachine);
  return okStatus();
}

}  // namespace

Result<HostCode> HostCode::load(std::span<const uint8_t> object) {
  GPUC_RETURN_IF_ERROR(checkElf(object));
  HostCode code;
  GPUC_ASSIGN_OR_RETURN(code.file_, openCodeFile());
  GPUC_RETURN_IF_ERROR(writeCode(code.file_.get(), object, 0));
  std::string path = "/proc/self/fd/" + std::to_string(code.file_.get());
  code.library_.reset(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL));
  if (!code.library_) return errorf("cannot load the plan's code: %s", dlerror());
  return code;
}

Result<KernelFunction> HostCode::find(const std::string& symbol) const {
  void* address = dlsym(library_.get(), symbol.c_str());
  link_map* map = nullptr;
  Dl_info found;
  // dlsym looks into the object's dependencies too: a plan could name `system`.
  if (!address || dlinfo(library_.get(), RTLD_DI_LINKMAP, &map) != 0 || dladdr(address, &found) == 0 ||
      reinterpret_cast<uintptr_t>(found.dli_fbase) != map->l_addr)
    return errorf("the plan's code does not define the kernel symbol '%s'", symbol.c_str());
  return reinterpret_cast<KernelFunction>(address);
}

}  // namespace gpuc
