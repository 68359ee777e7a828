//===- KernelCode.cpp - Machine code for the kernels of a plan --------------===//

#include "passes/emit/EmitParts.h"

#include "passes/Passes.h"
#include "passes/base/Target.h"
#include "passes/codegen/Codegen.h"
#include "passes/codegen/cuda/CudaCode.h"
#include "passes/codegen/host/HostCode.h"
#include "passes/emit/LibraryVersions.h"
#include "passes/updates/Updates.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

#include <tuple>

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

bool operator==(const ProductTiles &a, const ProductTiles &b) {
  return std::tie(a.rows, a.columns, a.tileRows, a.tileColumns, a.stride) ==
         std::tie(b.rows, b.columns, b.tileRows, b.tileColumns, b.stride);
}

/// By the name of the kernel, the tiles that products hand to it.
FailureOr<llvm::StringMap<ProductTiles>> productTilesIn(ModuleOp module) {
  llvm::StringMap<ProductTiles> tiles;
  llvm::StringSet<> launched;
  module.walk([&](plan::LaunchOp launch) { launched.insert(launch.getKernel()); });
  WalkResult walked = module.walk([&](plan::ProductOpInterface product) {
    FlatSymbolRefAttr update = product.getUpdateAttr();
    if (!update)
      return WalkResult::advance();
    std::optional<ProductTiles> own = tilesForUpdate(product);
    if (!own) {
      product->emitOpError(
          "has an update, but the host cannot hand the tiles of such a product to one: store the "
          "product, and launch the kernel behind it");
      return WalkResult::interrupt();
    }
    auto [entry, isNew] = tiles.try_emplace(update.getValue(), *own);
    if (entry->second == *own && !launched.contains(update.getValue()))
      return WalkResult::advance();
    product->emitOpError("has an update by @")
        << update.getValue()
        << ", which is launched as well, or updates by other tiles: give it a kernel of its own";
    return WalkResult::interrupt();
  });
  if (walked.wasInterrupted())
    return failure();
  return tiles;
}

using KernelCodes = DenseMap<Operation *, KernelCode>;

/// What the plan is for, and the libraries that its commands call, with the versions that the build found.
void emitTarget(ModuleOp module, plan::TargetKind target, StringRef name, fb::PlanT &file) {
  file.target = std::make_unique<fb::TargetT>();
  file.target->kind = static_cast<fb::TargetKind>(target);
  file.target->name = name.str();
  static constexpr std::pair<StringLiteral, StringLiteral> kVersions[] = {
      {"libxsmm", kLibxsmmVersion}, {"cublasLt", kCublasVersion}, {"cudnn", kCudnnVersion}};
  llvm::StringSet<> called;
  module.walk([&](plan::LibraryOpInterface command) { called.insert(command.getLibrary(target)); });
  for (auto [library, version] : kVersions)
    if (called.contains(library) && !version.empty()) {
      auto entry = std::make_unique<fb::LibraryT>();
      entry->name = library.str();
      entry->version = version.str();
      file.libraries.push_back(std::move(entry));
    }
}

void emitCode(fb::CodeKind kind, StringRef architecture, StringRef bytes, fb::PlanT &file) {
  auto entry = std::make_unique<fb::CodeT>();
  entry->kind = kind;
  entry->architecture = architecture.str();
  entry->data.assign(bytes.begin(), bytes.end());
  file.code.push_back(std::move(entry));
}

/// For each operand whether it goes by rows, as the kernel says.
std::vector<bool> rowsIn(plan::KernelOp kernel) {
  Block &body = kernel.getBody().front();
  std::vector<bool> byRows(body.getNumArguments() + body.getTerminator()->getNumOperands());
  for (int64_t operand : kernel.getByRows().value_or(ArrayRef<int64_t>()))
    byRows[operand] = true;
  return byRows;
}

FailureOr<HostTarget> hostTarget(StringRef cpu, std::string &error) {
  return cpu.empty() ? HostTarget::native(&error) : HostTarget::parse(cpu, &error);
}

FailureOr<KernelCodes> compileForHost(ModuleOp module, StringRef cpu, const EmitOptions &options,
                                      fb::PlanT &file) {
  std::string error;
  FailureOr<HostTarget> target = hostTarget(cpu, error);
  if (failed(target))
    return module.emitError(error), failure();

  emitTarget(module, plan::TargetKind::host, target->cpu, file);
  for (StringRef feature : target->features)
    if (feature.consume_front("+"))
      file.target->features.push_back(feature.str());

  FailureOr<llvm::StringMap<ProductTiles>> tiles = productTilesIn(module);
  if (failed(tiles))
    return failure();
  std::vector<KernelSource> sources = sourcesOf(module);
  for (KernelSource &source : sources)
    if (auto found = tiles->find(cast<plan::KernelOp>(source.body->getParentOp()).getSymName());
        found != tiles->end())
      source.tiles = found->second;
  std::vector<KernelSchedule> schedules;
  std::optional<HostCompiler> own;
  HostCompiler &compiler = options.begun ? *options.begun : own.emplace(*target, options.codegen);
  FailureOr<HostCode> compiled = compiler.finish(sources, [&] {
    for (const KernelSource &source : sources)
      schedules.push_back(scheduleHostKernel(*source.body, *target));
  });
  if (failed(compiled))
    return failure();
  if (!sources.empty()) // a program may be library calls alone
    emitCode(fb::CodeKind::host_object, target->cpu, compiled->object, file);
  KernelCodes codes;
  for (auto &&[source, symbol, schedule] : llvm::zip_equal(sources, compiled->symbols, schedules)) {
    auto kernel = cast<plan::KernelOp>(source.body->getParentOp());
    auto &[name, launch, update] = codes[kernel];
    name = symbol;
    launch.tiles = schedule.tiles;
    launch.grain = schedule.grain;
    if (source.tiles) {
      update.tile_rows = source.tiles->tileRows;
      update.tile_columns = source.tiles->tileColumns;
      update.stride = source.tiles->stride;
      update.grain =
          std::max<int64_t>(1, schedule.grain * source.tiles->rows * source.tiles->columns / schedule.tiles);
    }
    if (!kernel.getRows())
      continue;
    if (rowsIn(kernel) != schedule.byRows || static_cast<int64_t>(*kernel.getRows()) != schedule.rows)
      return kernel.emitOpError("has other rows than its schedule for ")
             << target->cpu << ", which has " << schedule.rows << ": leave them out, or run plan-parallelize";
    launch.rows = schedule.rows;
    launch.by_rows = std::move(schedule.byRows);
  }
  return codes;
}

/// Marks kernels whose operands all begin at multiples of what a thread reads at once, in each launch and
/// each iteration. Buffers do; views into them may not.
void markAligned(ModuleOp module) {
  llvm::StringSet<> apart;
  module.walk([&](plan::LaunchOp launch) {
    for (Value operand : launch->getOperands()) {
      plan::Range range = plan::rangeOf(operand);
      auto isMultiple = [](int64_t number) { return number % kVectorBytes == 0; };
      if (!isMultiple(range.offset) || !llvm::all_of(range.strides, isMultiple))
        apart.insert(launch.getKernel());
    }
  });
  for (auto kernel : module.getOps<plan::KernelOp>())
    if (!apart.contains(kernel.getSymName()))
      kernel->setAttr(kAlignedAttr, UnitAttr::get(module.getContext()));
}

FailureOr<KernelCodes> compileForCuda(ModuleOp module, StringRef architecture, const CodegenOptions &options,
                                      fb::PlanT &file) {
  std::string error;
  FailureOr<CudaTarget> target = CudaTarget::parse(architecture, &error);
  if (failed(target))
    return emitError(UnknownLoc::get(module.getContext()), error),
           failure(); // no place in the model is at fault

  emitTarget(module, plan::TargetKind::cuda, target->architecture, file);
  file.target->features = {target->architecture};
  markAligned(module);
  std::vector<KernelSource> sources = sourcesOf(module);
  FailureOr<CudaCode> compiled = compileCudaKernels(sources, *target, options);
  if (failed(compiled))
    return failure();
  // Machine code for this architecture; text for newer ones, which the driver compiles.
  if (!compiled->cubin.empty())
    emitCode(fb::CodeKind::cubin, target->architecture, compiled->cubin, file);
  if (!compiled->ptx.empty())
    emitCode(fb::CodeKind::ptx, target->architecture, compiled->ptx, file);
  KernelCodes codes;
  for (auto [source, symbol] : llvm::zip_equal(sources, compiled->symbols)) {
    CudaSchedule schedule = scheduleCudaKernel(*source.body);
    auto &[name, launch, update] = codes[source.body->getParentOp()];
    name = symbol;
    launch.grid = schedule.grid;
    launch.block = schedule.block;
  }
  return codes;
}

} // namespace

std::unique_ptr<HostCompiler> hostCompilerFor(StringRef name, const CodegenOptions &options) {
  std::string error; // is reported where code is needed
  FailureOr<Target> parsed = Target::parse(name.str(), error);
  if (failed(parsed) || parsed->isCuda())
    return nullptr;
  FailureOr<HostTarget> target = hostTarget(parsed->name, error);
  if (failed(target))
    return nullptr;
  return std::make_unique<HostCompiler>(std::move(*target), options);
}

void beginKernels(Operation *fused, HostCompiler &compiler) {
  fused->walk([&](ir::FusedOp kernel) {
    Block &body = kernel.getBody().front();
    // A product with what follows it is no kernel. What updates an operand element by element may be handed a
    // product's tiles, and be other code then.
    if (succeeded(checkKernel(body)) && !takesProductTiles(body))
      compiler.begin(body);
  });
}

FailureOr<KernelCodes> compileKernels(ModuleOp module, const EmitOptions &options, fb::PlanT &file) {
  auto target = module->getAttrOfType<plan::TargetAttr>(plan::kTargetAttr);
  if (!target)
    return module.emitError("has no plan.target"), failure();
  if (target.getKind() == plan::TargetKind::host)
    return compileForHost(module, target.getName(), options, file);
  return compileForCuda(module, target.getName(), options.codegen, file);
}

} // namespace gpuc
