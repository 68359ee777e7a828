#include <algorithm>
#include <array>
#include <cinttypes>
#include <map>

#include "runtime/cuda/conv_engine.h"
#include "runtime/cuda/library_call.h"
#include "runtime/plan/roles.h"

namespace gpuc::cuda {
namespace {

/// Those of f32 round to TF32, which the plan must allow; those of other types only what they return.
bool mayUseTensorCores(const fb::Conv& conv) { return conv.type() != fb::DataType::f32 || conv.tf32(); }

Status noEngine(const Dnn& dnn, const fb::Conv& conv, uint64_t workspace_bytes) {
  const fb::ConvAxis &height = *conv.height(), &width = *conv.width();
  return errorf("cuDNN %s has no engine for this %s convolution (%s, batch %" PRIu64 ", input %" PRIu64
                "x%" PRIu64 "x%" PRIu64 ", filter %" PRIu64 "x%" PRIu64 "x%" PRIu64 "x%" PRIu64
                ") within %" PRIu64 " bytes of workspace: compile with a newer gpuc, or update cuDNN",
                dnn.version().c_str(), fb::EnumNameDataType(conv.type()), fb::EnumNameConvKind(conv.kind()),
                conv.batch(), conv.in_channels(), height.input(), width.input(), conv.out_channels(),
                conv.in_channels() / conv.groups(), height.kernel(), width.kernel(), workspace_bytes);
}

/// A convolution through cuDNN: graph, engine and addresses are fixed when the plan is loaded.
class Conv final : public LibraryCall {
 public:
  Conv(const DnnHandle& handle, fb::ConvKind kind, ConvGraph graph, ConvEngine engine)
      : dnn_(handle.dnn()),
        handle_(handle.get()),
        kind_(kind),
        graph_(std::move(graph)),
        engine_(std::move(engine)) {}

  bool mustBeBound() const override { return true; }

  /// Makes cuDNN's pack of these addresses, so that a step makes none. Twice is once.
  Status bind(const CUdeviceptr* addresses) override {
    if (packs_.count(keyOf(addresses))) return okStatus();
    // What is read and what is written is the tensor that the kind says.
    const bool forward = kind_ == fb::ConvKind::forward;
    const int64_t read = forward ? ConvGraph::kInput : ConvGraph::kOutput;
    const int64_t other = kind_ == fb::ConvKind::filter_gradient ? ConvGraph::kInput : ConvGraph::kFilter;
    const int64_t written = forward                                 ? ConvGraph::kOutput
                            : kind_ == fb::ConvKind::input_gradient ? ConvGraph::kInput
                                                                    : ConvGraph::kFilter;
    const int64_t ids[] = {read, other, written, ConvGraph::kBias};
    auto pointer = [&](size_t operand) { return reinterpret_cast<void*>(addresses[operand]); };
    enum { a, b, c, bias, scratch };
    void* pointers[] = {pointer(a), pointer(b), pointer(c), pointer(bias)};
    const int64_t count = addresses[bias] ? 4 : 3;
    void* workspace = pointer(scratch);
    DnnDescriptor pack(dnn_, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, ids);
    pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count, pointers);
    pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
    GPUC_RETURN_IF_ERROR(pack.finalize());
    packs_[keyOf(addresses)] = std::move(pack);
    return okStatus();
  }

  /// On the handle's stream. Error: the addresses were not bound.
  Status enqueue(const CUdeviceptr* addresses, CUstream) const override {
    auto pack = packs_.find(keyOf(addresses));
    if (pack == packs_.end()) return errorf("conv: an address that was not there when the plan was loaded");
    return dnn_.check(dnn_.cudnnBackendExecute(handle_, engine_.plan.get(), pack->second.get()),
                      "cudnnBackendExecute");
  }

 private:
  using Addresses = std::array<CUdeviceptr, kConvOperands.size()>;
  static Addresses keyOf(const CUdeviceptr* addresses) {
    Addresses key;
    std::copy_n(addresses, key.size(), key.begin());
    return key;
  }

  const Dnn& dnn_;
  cudnnHandle_t handle_;
  fb::ConvKind kind_;
  ConvGraph graph_;
  ConvEngine engine_;
  std::map<Addresses, DnnDescriptor> packs_;
};

}  // namespace

Result<std::unique_ptr<LibraryCall>> prepareConv(const DnnHandle& handle, const fb::Conv& conv,
                                                 uint32_t alignment) {
  const Dnn& dnn = handle.dnn();
  const DnnTarget target = {.handle = handle.get()};
  const EngineRules rules = {.workspace_bytes = conv.workspace() ? conv.workspace()->size() : 0,
                             .tensor_cores = mayUseTensorCores(conv)};
  GPUC_ASSIGN_OR_RETURN(ConvGraph graph, ConvGraph::create(dnn, target, conv, alignment));
  GPUC_ASSIGN_OR_RETURN(std::optional<ConvEngine> engine, chooseEngine(dnn, target, graph, rules));
  if (!engine) return noEngine(dnn, conv, rules.workspace_bytes);
  return std::unique_ptr<LibraryCall>(new Conv(handle, conv.kind(), std::move(graph), *std::move(engine)));
}

}  // namespace gpuc::cuda
