//===- EmitLibraryCommand.cpp - Commands of libraries in the plan file ------===//

#include "passes/emit/EmitLibraryCommand.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace gpuc {

// Those that have a file of their own.
fb::AttentionT emit(plan::AttentionOp attention, EmitOperand operand);
fb::AttentionT emit(plan::AttentionGradientOp gradient, EmitOperand operand);
fb::ConvT emit(plan::ConvOp conv, EmitOperand operand);

fb::DataType dataTypeOf(Type element) { return static_cast<fb::DataType>(plan::dataTypeOf(element)); }

static fb::MatmulT emit(plan::MatmulOp matmul, EmitOperand operand) {
  fb::MatmulT entry;
  entry.type = dataTypeOf(matmul.getElement());
  entry.a = operand(matmul.getLhs());
  entry.b = operand(matmul.getRhs());
  entry.c = operand(matmul.getResult());
  entry.bias = operand(matmul.getBias());
  entry.mask = operand(matmul.getMask());
  entry.relu = matmul.getRelu();
  entry.accumulate = matmul.getAccumulate();
  entry.workspace = operand(matmul.getWorkspace());
  entry.batch = matmul.getBatch();
  entry.m = matmul.getM();
  entry.n = matmul.getN();
  entry.k = matmul.getK();
  entry.transpose_a = matmul.getTransposeLhs();
  entry.transpose_b = matmul.getTransposeRhs();
  entry.batch_stride_a = entry.batch > 1 ? entry.m * entry.k : 0;
  entry.batch_stride_b = entry.batch > 1 ? entry.k * entry.n : 0;
  entry.tf32 = matmul.getTf32();
  return entry;
}

static fb::SumT emit(plan::SumOp sum, EmitOperand operand) {
  fb::SumT entry;
  entry.type = dataTypeOf(sum.getElement());
  entry.parts = operand(sum.getParts());
  entry.result = operand(sum.getResult());
  return entry;
}

fb::WorkUnion emitLibraryCommand(Operation *command, EmitOperand operand) {
  fb::WorkUnion work;
  TypeSwitch<Operation *>(command)
      .Case<plan::MatmulOp, plan::ConvOp, plan::AttentionOp, plan::AttentionGradientOp, plan::SumOp>(
          [&](auto op) { work.Set(emit(op, operand)); });
  return work;
}

} // namespace gpuc
