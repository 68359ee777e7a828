#include "frontend/onnx/reader/ElementTypes.h"

namespace gpuc::onnx {
namespace {

/// Also those newer than the message definition that this is built with.
constexpr ElementType kElementTypes[] = {
    {1, "FLOAT", DataType::f32},
    {2, "UINT8", DataType::ui8},
    {3, "INT8", DataType::i8},
    {4, "UINT16", {}},
    {5, "INT16", {}},
    {6, "INT32", DataType::i32},
    {7, "INT64", DataType::i64},
    {8, "STRING", {}},
    {9, "BOOL", DataType::i1},
    {10, "FLOAT16", DataType::f16},
    {11, "DOUBLE", DataType::f64},
    {12, "UINT32", {}},
    {13, "UINT64", {}},
    {14, "COMPLEX64", {}},
    {15, "COMPLEX128", {}},
    {16, "BFLOAT16", DataType::bf16},
    {17, "FLOAT8E4M3FN", {}},
    {18, "FLOAT8E4M3FNUZ", {}},
    {19, "FLOAT8E5M2", {}},
    {20, "FLOAT8E5M2FNUZ", {}},
    {21, "UINT4", {}},
    {22, "INT4", {}},
    {23, "FLOAT4E2M1", {}},
    {24, "FLOAT8E8M0", {}},
    {25, "UINT2", {}},
    {26, "INT2", {}},
};

} // namespace

ElementType elementType(int64_t number) {
  for (const ElementType &candidate : kElementTypes)
    if (candidate.number == number)
      return candidate;
  return {number, "of no known element type", {}};
}

} // namespace gpuc::onnx
