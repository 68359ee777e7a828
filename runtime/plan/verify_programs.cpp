// Programs: every operand inside its buffer for all iterations of the repeats around it, every index in
// range, every count and size what its command says it is.
#include <cinttypes>
#include <unordered_set>
#include <vector>

#include "runtime/base/data_type.h"
#include "runtime/base/quote.h"
#include "runtime/base/shares.h"
#include "runtime/plan/operands.h"
#include "runtime/plan/verify.h"

namespace gpuc {
namespace {

__extension__ typedef __int128 Wide;  // strides times counts fit

/// Walks one stream. Keeps the counts of the repeats around the current command, outermost first.
class CommandVerifier {
  /// Whose operands they are; a text only when it is needed, since many commands may be of one kernel.
  struct What {
    const char* kind;
    const flatbuffers::String* name = nullptr;
    std::string str() const { return name ? kind + quoted(name) : kind; }
  };

 public:
  CommandVerifier(const fb::Plan& plan, const fb::Program& program) : plan_(plan), program_(program) {}

  Status verify(const fb::Stream& stream) {
    stream_ = &stream;
    return verify(stream.commands());
  }

 private:
  Status verify(const flatbuffers::Vector<flatbuffers::Offset<fb::Command>>* commands) {
    for (const fb::Command* command : each(commands)) GPUC_RETURN_IF_ERROR(verify(*command));
    return okStatus();
  }

  Status verify(const fb::Command& command) {
    if (!command.work()) return errorf("an empty command");
    GPUC_RETURN_IF_ERROR(verifyText(command.location(), "a command's location"));
    Status status = verifyWork(command);
    if (status.ok()) return status;
    std::string_view location = textOf(command.location());
    return location.empty() ? status : Status::error(status.message() + " (" + inQuotes(location) + ")");
  }

  Status verifyWork(const fb::Command& command) {
    GPUC_ASSIGN_OR_RETURN(const What what, whatOf(command));
    GPUC_RETURN_IF_ERROR(verifyOperands(command, what));
    switch (command.work_type()) {
      case fb::Work::Launch:
        return verify(*command.work_as_Launch(), what);
      case fb::Work::Matmul:
        return verify(*command.work_as_Matmul());
      case fb::Work::Conv:
        return verifyConv(plan_, *command.work_as_Conv());
      case fb::Work::Attention:
        return verifyAttention(*command.work_as_Attention());
      case fb::Work::Copy:
        return verify(*command.work_as_Copy());
      case fb::Work::Fill:
        return verify(*command.work_as_Fill());
      case fb::Work::Sum:
        return verify(*command.work_as_Sum());
      case fb::Work::AllReduce:
        return verifyAllReduce(command);
      case fb::Work::ReduceScatter:
        return verifyShares(command, *command.work_as_ReduceScatter());
      case fb::Work::AllGather:
        return verifyShares(command, *command.work_as_AllGather());
      case fb::Work::Record:
        return verifyEvent(command.work_as_Record()->event());
      case fb::Work::Wait:
        return verify(*command.work_as_Wait());
      default:
        return verifyLoop(command);
    }
  }

  Result<What> whatOf(const fb::Command& command) {
    switch (command.work_type()) {
      case fb::Work::Launch:
        return whatOf(*command.work_as_Launch());
      case fb::Work::Attention:
        return whatOf(command, command.work_as_Attention()->kind(), fb::AttentionKind::MAX);
      case fb::Work::Copy:
        return whatOf(command, command.work_as_Copy()->kind(), fb::CopyKind::MAX);
      default:
        if (command.work_type() == fb::Work::NONE || command.work_type() > fb::Work::MAX)
          return errorf("a command of unknown kind %d", int(command.work_type()));
        return What{kindOf(command)};
    }
  }

  Result<What> whatOf(const fb::Launch& launch) {
    if (launch.kernel() >= countOf(plan_.kernels()))
      return errorf("launch of kernel %" PRIu32 " of %" PRIu32, launch.kernel(), countOf(plan_.kernels()));
    return What{"launch of ", plan_.kernels()->Get(launch.kernel())->name()};
  }

  /// Of a command whose kind says what its operands are for.
  template <typename Kind>
  static Result<What> whatOf(const fb::Command& command, Kind kind, Kind most) {
    if (kind > most) return errorf("%s of unknown kind %d", kindOf(command), int(kind));
    return What{kindOf(command)};
  }

  /// All of its operands lie within their buffers; those that it cannot go without are there.
  Status verifyOperands(const fb::Command& command, const What& what) {
    for (const auto& [operand, use] : operandsOf(command))
      if (operand || !use.optional) GPUC_RETURN_IF_ERROR(verify(operand, what, use.name));
    return okStatus();
  }

  Status verify(const fb::Launch& launch, const What& what) {
    const fb::Kernel& kernel = *plan_.kernels()->Get(launch.kernel());
    uint64_t operands = uint64_t{countOf(launch.reads())} + countOf(launch.writes());
    if (operands != kernel.operands())
      return errorf("%s: %" PRIu64 " operands, the kernel takes %" PRIu32, what.str().c_str(), operands,
                    kernel.operands());
    GPUC_RETURN_IF_ERROR(verifyExtents(launch, what));
    return verifyRows(launch, what);
  }

  Status verifyRows(const fb::Launch& launch, const What& what) {
    const uint32_t by_rows = countOf(launch.by_rows()), reads = countOf(launch.reads());
    if (launch.rows() == 0 && by_rows == 0) return okStatus();
    if (launch.rows() == 0 || launch.tiles() % launch.rows() != 0)
      return errorf("%s: %" PRIu64 " tiles in %" PRIu64 " rows, expected equally many in each",
                    what.str().c_str(), launch.tiles(), launch.rows());
    if (by_rows != reads + countOf(launch.writes()))
      return errorf("%s: says of %" PRIu32 " operands whether they go by rows, it has %" PRIu32,
                    what.str().c_str(), by_rows, reads + countOf(launch.writes()));
    for (uint32_t i = 0; i < by_rows; ++i) {
      const fb::Operand& operand = *(i < reads ? launch.reads()->Get(i) : launch.writes()->Get(i - reads));
      if (launch.by_rows()->Get(i) && operand.size() % launch.rows() != 0)
        return errorf("%s: an operand of %" PRIu64 " bytes goes by %" PRIu64 " rows", what.str().c_str(),
                      operand.size(), launch.rows());
    }
    return okStatus();
  }

  Status verifyExtents(const fb::Launch& launch, const What& what) {
    if (plan_.target()->kind() == fb::TargetKind::host) {
      if (launch.tiles() == 0 || launch.tiles() > kMostExecutions || launch.grain() == 0 ||
          launch.grain() > kMostExecutions)
        return errorf("%s: %" PRIu64 " tiles with a grain of %" PRIu64 ", expected 1 to %" PRIu64 " of each",
                      what.str().c_str(), launch.tiles(), launch.grain(), kMostExecutions);
    } else if (launch.grid() == 0 || launch.grid() > INT32_MAX || launch.block() == 0 ||
               launch.block() > 1024) {
      return errorf("%s: a grid of %" PRIu32 " blocks of %" PRIu32 " threads", what.str().c_str(),
                    launch.grid(), launch.block());
    }
    return okStatus();
  }

  Status verify(const fb::Matmul& matmul) {
    if (matmul.type() > fb::DataType::MAX || !isFloat(static_cast<DataType>(matmul.type())))
      return errorf("matmul: unknown element type %d", int(matmul.type()));
    GPUC_RETURN_IF_ERROR(verifyTf32(matmul, "matmul", plan_.target()->kind()));
    for (uint64_t extent : {matmul.batch(), matmul.m(), matmul.n(), matmul.k()})
      if (extent == 0 || extent > kMostArenaBytes) return errorf("matmul: an extent of %" PRIu64, extent);
    uint64_t batch = matmul.batch(), m = matmul.m(), n = matmul.n(), k = matmul.k();
    GPUC_RETURN_IF_ERROR(verifyMatrix(matmul, *matmul.a(), "a", m, k, batch, matmul.batch_stride_a()));
    GPUC_RETURN_IF_ERROR(verifyMatrix(matmul, *matmul.b(), "b", k, n, batch, matmul.batch_stride_b()));
    GPUC_RETURN_IF_ERROR(verifyWorkspace(plan_, matmul.workspace(), "matmul"));
    if (matmul.squares()) GPUC_RETURN_IF_ERROR(verifySquaresOf(matmul));
    if (matmul.update()) return verifyUpdateOf(matmul);
    GPUC_RETURN_IF_ERROR(verifyDense(matmul, *matmul.c(), "c", m, n, batch));
    if (matmul.accumulate() && (matmul.bias() || matmul.relu() || matmul.mask()))
      return errorf("matmul: adds to its result, which neither bias nor relu nor mask follows");
    if (matmul.mask() && (matmul.bias() || matmul.relu()))
      return errorf("matmul: a mask, of a gradient, with a bias or relu");
    if (matmul.mask()) {
      GPUC_RETURN_IF_ERROR(verifyDense(matmul, *matmul.mask(), "mask", m, n, batch));
      if (plan_.target()->kind() == fb::TargetKind::cuda)
        return errorf("matmul: with a mask, which follows products on the host alone");
    }
    return matmul.bias() ? verifyDense(matmul, *matmul.bias(), "bias", 1, n, 1) : okStatus();
  }

  Status verifySquaresOf(const fb::Matmul& matmul) {
    if (matmul.batch() != 1 || matmul.bias() || matmul.mask() || matmul.relu() || matmul.accumulate())
      return errorf("matmul: with squares of what something follows, or of several matrices");
    return verifySquares(plan_, *matmul.squares(), static_cast<DataType>(matmul.type()), "matmul");
  }

  Status verifyUpdateOf(const fb::Matmul& matmul) {
    if (matmul.batch() != 1 || matmul.c() || matmul.bias() || matmul.mask() || matmul.relu() ||
        matmul.accumulate())
      return errorf(
          "matmul: with an update, which takes one matrix that is not stored and that nothing else follows");
    return verifyUpdate(plan_, *matmul.update(), "matmul");
  }

  /// An operand of `batch` matrices that lie `stride` elements apart, or of one that serves the whole batch.
  Status verifyMatrix(const fb::Matmul& matmul, const fb::Operand& operand, const char* name, uint64_t rows,
                      uint64_t columns, uint64_t batch, uint64_t stride) {
    if (batch == 1 || stride == 0) return verifyDense(matmul, operand, name, rows, columns, 1);
    GPUC_RETURN_IF_ERROR(verifyDense(matmul, operand, name, rows, columns, batch));
    if (stride != rows * columns)  // fits: verifyDense has held it against the operand
      return errorf("matmul: batch stride of %s is %" PRIu64 " elements, expected 0 or %" PRIu64, name,
                    stride, rows * columns);
    return okStatus();
  }

  Status verifyDense(const fb::Matmul& matmul, const fb::Operand& operand, const char* name, uint64_t rows,
                     uint64_t columns, uint64_t batch) {
    uint64_t bytes = static_cast<uint64_t>(sizeOf(static_cast<DataType>(matmul.type())));
    if (__builtin_mul_overflow(bytes, rows, &bytes) || __builtin_mul_overflow(bytes, columns, &bytes) ||
        __builtin_mul_overflow(bytes, batch, &bytes) || bytes != operand.size())
      return errorf("matmul: %s is %" PRIu64 " bytes, which is not %" PRIu64 "x%" PRIu64 "x%" PRIu64
                    " elements",
                    name, operand.size(), batch, rows, columns);
    if (!beginsAtElement(operand, static_cast<DataType>(matmul.type())))
      return errorf("matmul: %s begins within an element", name);
    return okStatus();
  }

  Status verify(const fb::Copy& copy) {
    switch (copy.kind()) {
      case fb::CopyKind::host_to_device:
        return verifyPort(copy, countOf(program_.inputs()), "input", copy.to(), copy.from());
      case fb::CopyKind::device_to_host:
        return verifyPort(copy, countOf(program_.outputs()), "output", copy.from(), copy.to());
      default:
        if (copy.from()->size() != copy.to()->size())
          return errorf("copy of %" PRIu64 " bytes to %" PRIu64, copy.from()->size(), copy.to()->size());
        return okStatus();
    }
  }

  /// A copy between the arena and the host's image of an input or output, which has the size of its buffer.
  /// `host`, the range within that image, may be missing: then it is all of it.
  Status verifyPort(const fb::Copy& copy, uint32_t ports, const char* what, const fb::Operand* device,
                    const fb::Operand* host) {
    if (copy.port() >= ports) return errorf("copy of %s %" PRIu32 " of %" PRIu32, what, copy.port(), ports);
    bool is_input = copy.kind() == fb::CopyKind::host_to_device;
    uint32_t buffer = is_input ? program_.inputs()->Get(copy.port())->buffer()
                               : program_.outputs()->Get(copy.port())->buffer();
    uint64_t bytes = plan_.buffers()->Get(buffer)->size();
    if (host) {
      if (host->buffer() != buffer)
        return errorf("copy of %s %" PRIu32 ": the host's range is of buffer %" PRIu32 ", expected %" PRIu32,
                      what, copy.port(), host->buffer(), buffer);
      GPUC_RETURN_IF_ERROR(verify(host, {"copy"}, "host range"));
      bytes = host->size();
    }
    if (bytes != device->size())
      return errorf("copy of %s %" PRIu32 ": %" PRIu64 " bytes in the arena, %" PRIu64 " on the host", what,
                    copy.port(), device->size(), bytes);
    return okStatus();
  }

  Status verify(const fb::Fill& fill) {
    uint32_t element = countOf(fill.pattern());
    bool known = element == 0 || element == 1 || element == 2 || element == 4 || element == 8;
    if (!known || (element != 0 && fill.to()->size() % element != 0))
      return errorf("fill of %" PRIu64 " bytes with a pattern of %" PRIu32 " bytes", fill.to()->size(),
                    element);
    return okStatus();
  }

  Status verify(const fb::Sum& sum) {
    const auto type = static_cast<DataType>(sum.type());
    if (sum.type() > fb::DataType::MAX || !isFloat(type))
      return errorf("sum: unknown element type %d", int(sum.type()));
    if (plan_.target()->kind() != fb::TargetKind::host)
      return errorf("sum: of a parallel's parts, which the host alone has");
    const uint64_t result = sum.result()->size();
    if (result % static_cast<uint64_t>(sizeOf(type)) != 0 || sum.parts()->size() % result != 0)
      return errorf("sum: parts of %" PRIu64 " bytes for a result of %" PRIu64, sum.parts()->size(), result);
    if (!beginsAtElement(*sum.parts(), type) || !beginsAtElement(*sum.result(), type))
      return errorf("sum: an operand begins within an element");
    return okStatus();
  }

  /// What holds of all collectives, whatever they exchange.
  Status verifyCollective(const fb::Command& command, fb::DataType element) {
    const auto type = static_cast<DataType>(element);
    const char* kind = kindOf(command);
    if (element > fb::DataType::MAX || type == DataType::i1)
      return errorf("%s: unknown element type %d", kind, int(element));
    if (exchanges_ && exchanges_ != stream_)
      return errorf("%s: ranks exchange in one order, and stream %s exchanges already", kind,
                    quoted(exchanges_->name()).c_str());
    exchanges_ = stream_;
    for (const CommandOperand& operand : operandsOf(command))
      if (!beginsAtElement(*operand.operand, type))
        return errorf("%s: an operand begins within an element", kind);
    return okStatus();
  }

  Status verifyAllReduce(const fb::Command& command) {
    const fb::AllReduce& reduce = *command.work_as_AllReduce();
    GPUC_RETURN_IF_ERROR(verifyCollective(command, reduce.type()));
    const auto type = static_cast<DataType>(reduce.type());
    const uint64_t part = reduce.part()->size(), result = reduce.result()->size();
    if (part != result || result % static_cast<uint64_t>(sizeOf(type)) != 0)
      return errorf("all_reduce: a part of %" PRIu64 " bytes for a result of %" PRIu64, part, result);
    return okStatus();
  }

  /// Each share is as long as what a rank has of the whole.
  template <typename Collective>
  Status verifyShares(const fb::Command& command, const Collective& collective) {
    GPUC_RETURN_IF_ERROR(verifyCollective(command, collective.type()));
    const auto element = static_cast<uint64_t>(sizeOf(static_cast<DataType>(collective.type())));
    const auto *wholes = collective.wholes(), *shares = collective.shares();
    const char* kind = kindOf(command);
    const uint32_t owners = collective.owners();
    if (owners > plan_.world_size())
      return errorf("%s: %" PRIu32 " owners among %" PRIu32 " ranks", kind, owners, plan_.world_size());
    const uint64_t tensors = owners == 0 ? 1 : owners;
    if (countOf(wholes) == 0 || countOf(wholes) != tensors * countOf(shares))
      return errorf("%s: %" PRIu32 " shares of %" PRIu32 " tensors", kind, countOf(shares), countOf(wholes));
    std::vector<uint64_t> elements;
    for (const fb::Operand* whole : each(wholes)) elements.push_back(whole->size() / element);
    const std::optional<Shares> known = Shares::of(elements, plan_.world_size(), element, owners);
    if (!known)
      return errorf("%s: tensors among %" PRIu32 " ranks without or with too many elements, or not alike",
                    kind, plan_.world_size());
    for (uint32_t i = 0; i < countOf(wholes); ++i)
      if (const uint64_t whole = wholes->Get(i)->size(),
          share = shares->Get(static_cast<uint32_t>(i / tensors))->size();
          whole % element != 0 || share != known->pieces[i / tensors].each * element)
        return errorf("%s: a share of %" PRIu64 " bytes of %" PRIu64 " among %" PRIu32 " ranks", kind, share,
                      whole, plan_.world_size());
    return okStatus();
  }

  Status verify(const fb::Wait& wait) {
    if (wait.distance() > kMostDistance)
      return errorf("wait over a distance of %" PRIu32 ", at most %" PRIu32, wait.distance(), kMostDistance);
    return verifyEvent(wait.event());
  }

  Status verifyEvent(uint32_t event) {
    if (event >= countOf(program_.events()))
      return errorf("record of or wait for event %" PRIu32 " of %" PRIu32, event, countOf(program_.events()));
    return okStatus();
  }

  Status verifyLoop(const fb::Command& command) {
    const CommandLoop loop = *loopOf(command);
    if (counts_.size() == kMostRepeatDepth)
      return errorf("repeats nested deeper than %" PRIu32, kMostRepeatDepth);
    uint64_t executions = executions_;
    if (loop.count == 0 || __builtin_mul_overflow(executions, loop.count, &executions) ||
        executions > kMostExecutions)
      return errorf("repeat %" PRIu64 " times: expected 1 to %" PRIu64 " with those around it", loop.count,
                    kMostExecutions);
    std::swap(executions, executions_);
    counts_.push_back(loop.count);
    Status status = verify(loop.commands);
    counts_.pop_back();
    std::swap(executions, executions_);
    if (!status.ok() || !command.work_as_Parallel()) return status;
    return verifyParallel(plan_, *command.work_as_Parallel(), counts_);
  }

  /// The start moves by stride · (0 … count - 1) for each repeat around it: the extremes must lie in the
  /// buffer.
  Status verify(const fb::Operand* operand, const What& what, const char* role) {
    if (!operand) return errorf("%s without %s", what.str().c_str(), role);
    if (operand->buffer() >= countOf(plan_.buffers()))
      return errorf("%s: %s in buffer %" PRIu32 " of %" PRIu32, what.str().c_str(), role, operand->buffer(),
                    countOf(plan_.buffers()));
    const fb::Buffer& buffer = *plan_.buffers()->Get(operand->buffer());
    if (operand->size() == 0)
      return errorf("%s: empty %s in %s", what.str().c_str(), role, quoted(buffer.name()).c_str());
    if (!elementsAligned(operand->strides()))
      return errorf("%s: %s has misaligned strides", what.str().c_str(), role);
    if (countOf(operand->strides()) > counts_.size())
      return errorf("%s: %s has %" PRIu32 " strides within %zu repeats", what.str().c_str(), role,
                    countOf(operand->strides()), counts_.size());
    Wide low = operand->offset(), high = operand->offset();
    for (size_t d = 0; d < counts_.size(); ++d) {
      Wide shift = static_cast<Wide>(strideOf(*operand, d)) * static_cast<Wide>(counts_[d] - 1);
      (shift < 0 ? low : high) += shift;
    }
    if (low < 0 || high + static_cast<Wide>(operand->size()) > static_cast<Wide>(buffer.size()))
      return errorf(
          "%s: %s at offset %" PRIu64 ", %" PRIu64 " bytes, leaves buffer %s of %" PRIu64 " bytes%s",
          what.str().c_str(), role, operand->offset(), operand->size(), quoted(buffer.name()).c_str(),
          buffer.size(), counts_.empty() ? "" : " in some iteration");
    return okStatus();
  }

  const fb::Plan& plan_;
  const fb::Program& program_;
  const fb::Stream* stream_ = nullptr;     // whose commands are at hand
  const fb::Stream* exchanges_ = nullptr;  // that speaks to other ranks
  std::vector<uint64_t> counts_;
  uint64_t executions_ = 1;  // the product of counts_
};

template <typename Port>
Status verifyPorts(const fb::Plan& plan, const flatbuffers::Vector<flatbuffers::Offset<Port>>* ports,
                   const char* what) {
  std::unordered_set<std::string_view> names;
  for (const Port* port : each(ports)) {
    GPUC_RETURN_IF_ERROR(verifyName(port->name(), what));
    if (!names.insert(textOf(port->name())).second)
      return errorf("two %ss are called %s", what, quoted(port->name()).c_str());
    if (port->buffer() >= countOf(plan.buffers()))
      return errorf("%s %s in buffer %" PRIu32 " of %" PRIu32, what, quoted(port->name()).c_str(),
                    port->buffer(), countOf(plan.buffers()));
  }
  return okStatus();
}

Status verifyInputs(const fb::Plan& plan, const fb::Program& program) {
  GPUC_RETURN_IF_ERROR(verifyPorts(plan, program.inputs(), "input"));
  int rows = 0;
  std::unordered_set<uint32_t> buffers;
  for (const fb::Input* input : each(program.inputs())) {
    const fb::Buffer& buffer = *plan.buffers()->Get(input->buffer());
    if (!buffers.insert(input->buffer()).second)
      return errorf("input %s: another one lies in its buffer %s", quoted(input->name()).c_str(),
                    quoted(buffer.name()).c_str());
    if (input->role() > fb::InputRole::MAX)
      return errorf("input %s: unknown role %d", quoted(input->name()).c_str(), int(input->role()));
    if (input->range() < -1 || input->range() == 0)
      return errorf("input %s: a range of %" PRId64, quoted(input->name()).c_str(), input->range());
    if (input->role() == fb::InputRole::rows) {
      if (++rows > 1 || buffer.type() != fb::DataType::i32 || buffer.size() != 4)
        return errorf("input %s: rows is one i32 scalar", quoted(input->name()).c_str());
      if (plan.batch() == 0) return errorf("it counts rows, and the plan's batch is 0");
    } else if (textOf(program.name()) == "init") {
      return errorf("it takes the input %s, and init takes none", quoted(input->name()).c_str());
    }
  }
  return okStatus();
}

/// Each element of an output that has checks is counted under its own.
Status verifyOutputs(const fb::Plan& plan, const fb::Program& program) {
  GPUC_RETURN_IF_ERROR(verifyPorts(plan, program.outputs(), "output"));
  for (const fb::Output* output : each(program.outputs())) {
    const fb::Buffer& buffer = *plan.buffers()->Get(output->buffer());
    uint64_t checks = countOf(output->checks());
    if (checks == 0) continue;
    for (const fb::Check* check : each(output->checks()))
      for (const flatbuffers::String* text : {check->op(), check->layer(), check->location()})
        GPUC_RETURN_IF_ERROR(verifyText(text, "a check"));
    bool fits = buffer.type() == fb::DataType::i32 && countOf(buffer.shape()) == 1 &&
                static_cast<uint64_t>(buffer.shape()->Get(0)) == checks;
    if (!fits)
      return errorf("output %s: %" PRIu64 " checks, expected one for each element of a list of i32",
                    quoted(output->name()).c_str(), checks);
  }
  return okStatus();
}

}  // namespace

Status verifyProgram(const fb::Plan& plan, const fb::Program& program) {
  GPUC_RETURN_IF_ERROR(verifyInputs(plan, program));
  GPUC_RETURN_IF_ERROR(verifyOutputs(plan, program));
  for (const flatbuffers::String* event : each(program.events()))
    GPUC_RETURN_IF_ERROR(verifyName(event, "event"));
  if (countOf(program.streams()) > kMostStreams)
    return errorf("%" PRIu32 " streams, at most %" PRIu32, countOf(program.streams()), kMostStreams);
  CommandVerifier commands(plan, program);
  for (const fb::Stream* stream : each(program.streams())) {
    GPUC_RETURN_IF_ERROR(verifyName(stream->name(), "stream"));
    Status status = commands.verify(*stream);
    if (!status.ok()) return Status::error("stream " + quoted(stream->name()) + ": " + status.message());
  }
  return okStatus();
}

}  // namespace gpuc
