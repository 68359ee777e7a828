#ifndef PLAN_OP_BASE
#define PLAN_OP_BASE

include "dialects/gpuc/GpucDialect.td"
include "dialects/gpuc/GpucInterfaces.td"
include "dialects/plan/PlanDialect.td"

def Plan_Sound : NativeOpTrait<"Sound"> {
  let cppNamespace = "::gpuc::plan";
}

class Plan_Op<string mnemonic, list<Trait> traits = []> : Op<Plan_Dialect, mnemonic, traits # [Plan_Sound]>;

def BufferOp : DeclareOpInterfaceMethods<BufferOpInterface>;
def CommandOp : DeclareOpInterfaceMethods<CommandOpInterface>;
def Collective : DeclareOpInterfaceMethods<CollectiveOpInterface>;
def LoopOp : DeclareOpInterfaceMethods<LoopOpInterface>;

class Plan_Command<string mnemonic, list<Trait> traits = []> : Plan_Op<mnemonic, traits # [CommandOp]>;

/// One whose operands have the order of a table in runtime/plan/roles.h, with a cost of its own.
class Plan_TableCommand<string mnemonic, string table, list<Trait> traits = []>
    : Plan_Command<mnemonic, traits # [DeclareOpInterfaceMethods<CostOpInterface, ["getFlops", "getBytes"]>]> {
  code operandsDefinition = [{
    ::llvm::SmallVector<::gpuc::plan::CommandOperand> $cppClass::getCommandOperands() {
      return operandsByTable(*this, }] # table # [{);
    }

    int64_t $cppClass::getBytes() { return bytesTouchedBy(getCommandOperands()); }
  }];
  let extraClassDefinition = operandsDefinition;
}

/// One that a library computes: libxsmm on the host, `cudaLibrary` on CUDA.
class Plan_LibraryCommand<string mnemonic, string table, string cudaLibrary, list<Trait> traits = []>
    : Plan_TableCommand<mnemonic, table, traits # [AttrSizedOperandSegments, DeclareOpInterfaceMethods<LibraryOpInterface>]> {
  let extraClassDefinition = operandsDefinition # [{
    ::llvm::StringRef $cppClass::getLibrary(TargetKind target) {
      return target == TargetKind::host ? "libxsmm" : "}] # cudaLibrary # [{";
    }
  }];
  let hasVerifier = 1;
}

/// A place in the arena, in hexadecimal: `at 0x1A00`.
def Plan_Place : OptionalAttr<I64Attr>;

#endif
