# Precompiled headers: what many files include is read once. Each is an object library that other targets name with REUSE_FROM.
# gpuc_precompiled_headers(NAME header.h)
function(gpuc_precompiled_headers name header)
  set(source "${PROJECT_BINARY_DIR}/cmake/${name}.cpp")
  file(CONFIGURE OUTPUT "${source}" CONTENT "// Carries the precompiled header.\n")
  add_library(${name} OBJECT "${source}")
  target_precompile_headers(${name} PRIVATE "${header}")
endfunction()
