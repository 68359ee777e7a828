//===- KernelCode.cpp - Machine code for the kernels of a plan --------------===//

#include "passes/emit/KernelCode.h"

#include "passes/codegen/cuda/CudaCode.h"
#include "passes/codegen/host/HostCode.h"
#include "passes/emit/LibraryVersions.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace gpuc {
namespace {

/// They are numbered: a kernel's name may hold characters that no assembler takes.
std::vector<KernelSource> sourcesOf(ModuleOp module) {
  std::vector<KernelSource> sources;
  for (auto kernel : module.getOps<plan::KernelOp>())
    sources.push_back(
        {"gpuc_kernel_" + std::to_string(sources.size()), &kernel.getBody().front(), kernel.getLoc()});
  return sources;
}

/// The libraries that the plan's commands call, with the versions that the build found.
std::vector<std::pair<std::string, std::string>> librariesOf(ModuleOp module, plan::TargetKind target) {
  static constexpr std::pair<StringLiteral, StringLiteral> kVersions[] = {
      {"libxsmm", kLibxsmmVersion}, {"cublasLt", kCublasVersion}, {"cudnn", kCudnnVersion}};
  llvm::StringSet<> called;
  module.walk([&](plan::LibraryOpInterface command) { called.insert(command.getLibrary(target)); });
  std::vector<std::pair<std::string, std::string>> libraries;
  for (auto [name, version] : kVersions)
    if (called.contains(name) && !version.empty())
      libraries.emplace_back(name.str(), version.str());
  return libraries;
}

/// For each operand whether it goes by rows, as the kernel says.
std::vector<bool> rowsIn(plan::KernelOp kernel) {
  Block &body = kernel.getBody().front();
  std::vector<bool> byRows(body.getNumArguments() + body.getTerminator()->getNumOperands());
  for (int64_t operand : kernel.getByRows().value_or(ArrayRef<int64_t>()))
    byRows[operand] = true;
  return byRows;
}

FailureOr<KernelCode> compileForHost(ModuleOp module, StringRef cpu, const CodegenOptions &options) {
  std::string error;
  FailureOr<HostTarget> target = cpu.empty() ? HostTarget::native(&error) : HostTarget::parse(cpu, &error);
  if (failed(target))
    return module.emitError(error), failure();

  KernelCode code;
  code.targetKind = plan::TargetKind::host;
  code.libraries = librariesOf(module, code.targetKind);
  code.targetName = target->cpu;
  for (StringRef feature : target->features)
    if (feature.consume_front("+"))
      code.targetFeatures.push_back(feature.str());

  std::vector<KernelSource> sources = sourcesOf(module);
  FailureOr<HostCode> compiled = compileHostKernels(sources, *target, options);
  if (failed(compiled))
    return failure();
  if (!sources.empty()) // a program may be library calls alone
    code.objects.push_back({fb::CodeKind::host_object, target->cpu, std::move(compiled->object)});
  for (auto [source, symbol] : llvm::zip_equal(sources, compiled->symbols)) {
    KernelSchedule schedule = scheduleHostKernel(*source.body, *target);
    KernelCode::Schedule &entry = code.schedules[source.body->getParentOp()];
    entry.symbol = symbol;
    entry.tiles = schedule.tiles;
    entry.grain = schedule.grain;
    auto kernel = cast<plan::KernelOp>(source.body->getParentOp());
    if (!kernel.getRows())
      continue;
    if (rowsIn(kernel) != schedule.byRows || static_cast<int64_t>(*kernel.getRows()) != schedule.rows)
      return kernel.emitOpError("has other rows than its schedule for ")
             << target->cpu << ", which has " << schedule.rows << ": leave them out, or run plan-parallelize";
    entry.rows = schedule.rows;
    entry.byRows = std::move(schedule.byRows);
  }
  return code;
}

FailureOr<KernelCode> compileForCuda(ModuleOp module, StringRef architecture, const CodegenOptions &options) {
  std::string error;
  FailureOr<CudaTarget> target = CudaTarget::parse(architecture, &error);
  if (failed(target))
    return emitError(UnknownLoc::get(module.getContext()), error),
           failure(); // no place in the model is at fault

  KernelCode code;
  code.targetKind = plan::TargetKind::cuda;
  code.libraries = librariesOf(module, code.targetKind);
  code.targetName = target->architecture;
  code.targetFeatures = {target->architecture};
  std::vector<KernelSource> sources = sourcesOf(module);
  FailureOr<CudaCode> compiled = compileCudaKernels(sources, *target, options);
  if (failed(compiled))
    return failure();
  // Machine code for this architecture; text for newer ones, which the driver compiles.
  if (!compiled->cubin.empty())
    code.objects.push_back({fb::CodeKind::cubin, target->architecture, std::move(compiled->cubin)});
  if (!compiled->ptx.empty())
    code.objects.push_back({fb::CodeKind::ptx, target->architecture, std::move(compiled->ptx)});
  for (auto [source, symbol] : llvm::zip_equal(sources, compiled->symbols)) {
    CudaSchedule schedule = scheduleCudaKernel(*source.body);
    KernelCode::Schedule &entry = code.schedules[source.body->getParentOp()];
    entry.symbol = symbol;
    entry.grid = schedule.grid;
    entry.block = schedule.block;
  }
  return code;
}

} // namespace

FailureOr<KernelCode> compileKernels(ModuleOp module, const CodegenOptions &options) {
  auto target = module->getAttrOfType<plan::TargetAttr>(plan::kTargetAttr);
  if (!target)
    return module.emitError("has no plan.target"), failure();
  if (target.getKind() == plan::TargetKind::host)
    return compileForHost(module, target.getName(), options);
  return compileForCuda(module, target.getName(), options);
}

} // namespace gpuc
