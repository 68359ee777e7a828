#include <algorithm>
#include <array>
#include <charconv>

#include "runtime/cuda/executable.h"

namespace gpuc::cuda {

Architecture Architecture::parse(std::string_view name) {
  constexpr std::string_view prefix = "sm_";
  if (name.substr(0, prefix.size()) != prefix) return {};
  name.remove_prefix(prefix.size());
  int number = 0;
  auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc() || end != name.data() + name.size()) return {};
  return {number / 10, number % 10};
}

std::string Architecture::str() const { return "sm_" + std::to_string(major) + std::to_string(minor); }

const fb::Code* chooseCode(const fb::Plan& plan, Architecture device) {
  // Machine code runs on its own generation, on the same or a later minor revision; PTX on everything later.
  const fb::Code* best = nullptr;
  auto better = [&](const fb::Code& code, Architecture architecture) {
    if (!best) return true;
    if (code.kind() != best->kind()) return code.kind() == fb::CodeKind::cubin;
    return architecture > Architecture::parse(textOf(best->architecture()));
  };
  for (const fb::Code* code : each(plan.code())) {
    Architecture architecture = Architecture::parse(textOf(code->architecture()));
    bool runs = architecture.major > 0 && architecture <= device &&
                (code->kind() == fb::CodeKind::ptx || architecture.major == device.major);
    if (runs && better(*code, architecture)) best = code;
  }
  return best;
}

std::string describeCode(const fb::Plan& plan) {
  std::string text;
  for (const fb::Code* code : each(plan.code()))
    text += (text.empty() ? "" : ", ") + std::string(fb::EnumNameCodeKind(code->kind())) + " for " +
            std::string(textOf(code->architecture()));
  return text.empty() ? "missing" : text;
}

Result<Module> loadModule(const Driver& driver, const fb::Code& code) {
  // PTX is text that must end in a zero.
  std::string image(reinterpret_cast<const char*>(code.data()->data()), code.data()->size());
  std::array<char, 4096> log = {};
  std::array<CUjit_option, 2> options = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  std::array<void*, 2> values = {log.data(), reinterpret_cast<void*>(log.size() - 1)};
  CUmodule module = nullptr;
  CUresult result =
      driver.cuModuleLoadDataEx(&module, image.c_str(), options.size(), options.data(), values.data());
  if (Status status = driver.check(result, "cuModuleLoadDataEx"); !status.ok()) {
    std::string text(log.data());
    std::replace(text.begin(), text.end(), '\n', ' ');
    return Status::error(status.message() + " (" + fb::EnumNameCodeKind(code.kind()) + " for " +
                         std::string(textOf(code.architecture())) + ")" + (text.empty() ? "" : ": " + text));
  }
  return Module(module, driver.cuModuleUnload);
}

Result<std::vector<CUfunction>> findKernels(const Driver& driver, CUmodule module, const fb::Plan& plan) {
  std::vector<CUfunction> functions;
  for (const fb::Kernel* kernel : each(plan.kernels())) {
    std::string symbol(textOf(kernel->symbol()));
    CUfunction function = nullptr;
    CUresult result = driver.cuModuleGetFunction(&function, module, symbol.c_str());
    if (result == CUDA_ERROR_NOT_FOUND)
      return Status::error("the plan's code does not define the kernel symbol '" + symbol + "'");
    GPUC_RETURN_IF_ERROR(driver.check(result, "cuModuleGetFunction"));
    functions.push_back(function);
  }
  return functions;
}

}  // namespace gpuc::cuda
