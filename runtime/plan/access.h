// Reading a FlatBuffer whose optional parts may be missing: an absent vector is empty, an absent string is
// "". And commands that hold others.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "runtime/plan/plan_generated.h"

namespace gpuc {

template <typename T>
uint32_t countOf(const flatbuffers::Vector<T>* vector) {
  return vector ? vector->size() : 0;
}

inline std::string_view textOf(const flatbuffers::String* text) {
  return text ? std::string_view(text->c_str(), text->size()) : std::string_view();
}

/// Elements of plans' vectors that this thread has gone through: what reading costs, for tests to hold
/// against the bytes of the file.
inline thread_local uint64_t visited_elements = 0;

/// For range-based loops over a vector that may be missing.
template <typename T>
struct EachOf {
  const flatbuffers::Vector<T>* vector;
  auto begin() const { return vector ? vector->begin() : Iterator(nullptr, 0); }
  auto end() const { return vector ? vector->end() : Iterator(nullptr, 0); }
  using Iterator = typename flatbuffers::Vector<T>::const_iterator;
};
template <typename T>
EachOf<T> each(const flatbuffers::Vector<T>* vector) {
  visited_elements += countOf(vector);
  return {vector};
}

using Commands = flatbuffers::Vector<flatbuffers::Offset<fb::Command>>;

/// What a repeat executes `count` times, or a parallel for each of its parts; those of one by rows once.
struct CommandLoop {
  const Commands* commands;
  uint64_t count;
};
inline std::optional<CommandLoop> loopOf(const fb::Command& command) {
  if (const fb::Repeat* repeat = command.work_as_Repeat())
    return CommandLoop{repeat->commands(), repeat->count()};
  if (const fb::Parallel* parallel = command.work_as_Parallel())
    return CommandLoop{parallel->commands(), parallel->by_rows() ? 1 : parallel->parts()};
  return std::nullopt;
}

/// Of the d-th enclosing repeat or parallel, in bytes; strides that are not written are 0.
inline int64_t strideOf(const fb::Operand& operand, uint32_t d) {
  return d < countOf(operand.strides()) ? operand.strides()->Get(d) : 0;
}

}  // namespace gpuc
