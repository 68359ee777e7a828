#ifndef PLAN_DIALECT
#define PLAN_DIALECT

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Plan_Dialect : Dialect {
  let name = "plan";
  let cppNamespace = "::gpuc::plan";
  let summary = "Scheduled training steps: time and memory, no tensors";
  let description = [{
    A plan is a module of variables, constants, kernels and programs. A program is commands over buffers, first in one
    list (`gpuc-to-plan`, `plan-order`), then on streams that events order (`plan-assign-streams`), over buffers that at
    last have their place in the one arena (`plan-place-buffers`). `plan-verify` proves that no two commands conflict.

    A buffer keeps the name of the tensor that it holds; offsets are hexadecimal and count from the start of the arena.
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let dependentDialects = ["::gpuc::ir::GpucDialect"];
}

//===----------------------------------------------------------------------===//
// Types and attributes
//===----------------------------------------------------------------------===//

def Plan_Buffer : TypeDef<Plan_Dialect, "Buffer"> {
  let mnemonic = "buffer";
  let summary = "Bytes in the arena";
}
def Plan_BufferType : BuildableType<"$_builder.getType<::gpuc::plan::BufferType>()">;
def Plan_AnyBuffer : Type<CPred<"::llvm::isa<::gpuc::plan::BufferType>($_self)">, "buffer">,
                     BuildableType<"$_builder.getType<::gpuc::plan::BufferType>()">;

def Plan_Event : TypeDef<Plan_Dialect, "Event"> {
  let mnemonic = "event";
  let summary = "A point in a stream that other streams can wait for";
}
def Plan_AnyEvent : Type<CPred<"::llvm::isa<::gpuc::plan::EventType>($_self)">, "event">,
                    BuildableType<"$_builder.getType<::gpuc::plan::EventType>()">;

class Plan_EnumCase<string name, int value> : I32EnumAttrCase<name, value>;
class Plan_Enum<string name, string text, list<I32EnumAttrCase> cases> : I32EnumAttr<name, text, cases> {
  let cppNamespace = "::gpuc::plan";
  let genSpecializedAttr = 0;
}

def Plan_Category : Plan_Enum<"Category", "What a buffer's bytes are for", [
  Plan_EnumCase<"parameter", 0>, Plan_EnumCase<"gradient", 1>, Plan_EnumCase<"optimizer", 2>,
  Plan_EnumCase<"activation", 3>, Plan_EnumCase<"workspace", 4>, Plan_EnumCase<"input", 5>,
  Plan_EnumCase<"constant", 6>]>;
def Plan_CategoryAttr : EnumAttr<Plan_Dialect, Plan_Category, "category">;

def Plan_TargetKind : Plan_Enum<"TargetKind", "Where a plan runs", [
  Plan_EnumCase<"host", 0>, Plan_EnumCase<"cuda", 1>]>;
def Plan_TargetKindAttr : EnumAttr<Plan_Dialect, Plan_TargetKind, "target_kind">;

def Plan_TargetAttr : AttrDef<Plan_Dialect, "Target"> {
  let mnemonic = "target";
  let summary = "The device that a plan is made for";
  let description = [{
    ```mlir
    #plan.target<host, "sapphirerapids">
    #plan.target<cuda, "sm_90">
    ```
  }];
  let parameters = (ins EnumParameter<Plan_TargetKind>:$kind, StringRefParameter<>:$name);
  let assemblyFormat = "`<` $kind `,` $name `>`";
}

//===----------------------------------------------------------------------===//
// Interfaces
//===----------------------------------------------------------------------===//

def BufferOpInterface : OpInterface<"BufferOpInterface"> {
  let cppNamespace = "::gpuc::plan";
  let description = "An op that names bytes of the arena: a variable's, a constant's, an input's or a program's own.";
  let methods = [
    InterfaceMethod<"The tensor that the bytes hold.", "::mlir::RankedTensorType", "getTensorType">,
    InterfaceMethod<"The tensor's name.", "::llvm::StringRef", "getBufferName">,
    InterfaceMethod<"What the bytes are for.", "::gpuc::plan::Category", "getBufferCategory">,
  ];
}

def CommandOpInterface : OpInterface<"CommandOpInterface"> {
  let cppNamespace = "::gpuc::plan";
  let description = "What a stream executes.";
  let methods = [
    InterfaceMethod<"The buffers (or views) that the command touches, in the order of its kind's table in "
                    "runtime/plan/roles.h; of a loop those of its commands.",
                    "::llvm::SmallVector<::gpuc::plan::CommandOperand>", "getCommandOperands">,
  ];
  let extraSharedClassDeclaration = [{
    /// Buffers (or views) that the command reads, or adds to.
    ::llvm::SmallVector<::mlir::Value> getReads() {
      return ::gpuc::plan::buffersOf($_op.getCommandOperands(), ::gpuc::isRead);
    }

    /// Buffers (or views) that the command writes.
    ::llvm::SmallVector<::mlir::Value> getWrites() {
      return ::gpuc::plan::buffersOf($_op.getCommandOperands(), ::gpuc::isWritten);
    }
  }];
}

def LibraryOpInterface : OpInterface<"LibraryOpInterface"> {
  let cppNamespace = "::gpuc::plan";
  let description = "A command that a library computes.";
  let methods = [
    InterfaceMethod<"Its name, by which the plan's file lists it; empty where the target has none.", "::llvm::StringRef",
                    "getLibrary", (ins "::gpuc::plan::TargetKind":$target)>,
  ];
}

def ProductCommand : OpInterface<"ProductOpInterface"> {
  let cppNamespace = "::gpuc::plan";
  let description = "A product of matrices, or of images and filters, and what follows each element of it.";
  let methods = [
    InterfaceMethod<"Of the result's elements.", "::mlir::Type", "getElement">,
    InterfaceMethod<"What is added, a vector, or null.", "::mlir::Value", "getBias">,
    InterfaceMethod<"Whether max(…, 0) is taken.", "bool", "getRelu">,
    InterfaceMethod<"Where an element is 0 or less, the result is 0; null for nowhere.", "::mlir::Value", "getMask">,
    InterfaceMethod<"Whether f32 is rounded to TF32.", "bool", "getTf32">,
    InterfaceMethod<"What is written; null of what is handed to an update.", "::mlir::Value", "getResult">,
    InterfaceMethod<"What the library may use besides, or null.", "::mlir::Value", "getWorkspace">,
    InterfaceMethod<"Where the squares of the result's tiles are added up, or null.", "::mlir::Value", "getSquares">,
    InterfaceMethod<"The kernel that takes the result's tiles, or null.", "::mlir::FlatSymbolRefAttr", "getUpdateAttr">,
    InterfaceMethod<"What it reads besides.", "::mlir::OperandRange", "getUpdateInputs">,
    InterfaceMethod<"What it writes.", "::mlir::OperandRange", "getUpdateOutputs">,
  ];
}

def CollectiveOpInterface : OpInterface<"CollectiveOpInterface"> {
  let cppNamespace = "::gpuc::plan";
  let description = "A command with which ranks exchange: all of them come to it, in one order.";
  let methods = [
    InterfaceMethod<"Of what the rank reads, and of what it has then.", "::mlir::Type", "getElement">,
  ];
}

def LoopOpInterface : OpInterface<"LoopOpInterface"> {
  let cppNamespace = "::gpuc::plan";
  let description = "A command whose commands are executed again and again, with views that move.";
  let methods = [
    InterfaceMethod<"How often: the iterations of a repeat, the parts of a parallel, 1 if it is by rows.", "int64_t",
                    "getTripCount">,
    InterfaceMethod<"The commands, and their views.", "::mlir::Block &", "getCommands", (ins), [{
      return $_op.getBody().front();
    }]>,
  ];
}

#endif
