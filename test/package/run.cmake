# Installs the runtime from BUILD, builds this folder against it in WORK with COMPILER and C_COMPILER, runs it on PLAN.
file(REMOVE_RECURSE "${WORK}")
function(step)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${ARGV}\n${output}")
  endif()
endfunction()
step("${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${WORK}/prefix" --component runtime)
step("${CMAKE_COMMAND}" -S "${CMAKE_CURRENT_LIST_DIR}" -B "${WORK}/build" "-DCMAKE_PREFIX_PATH=${WORK}/prefix"
     "-DCMAKE_CXX_COMPILER=${COMPILER}" "-DCMAKE_C_COMPILER=${C_COMPILER}")
step("${CMAKE_COMMAND}" --build "${WORK}/build")
step("${WORK}/build/uses_gpuc" "${PLAN}")
step("${WORK}/build/uses_gpuc_c" "${PLAN}")
