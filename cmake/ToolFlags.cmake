# Writes the flags that tools/gpuc-*.cpp declare, or share, and the passes of passes/*Passes.td, which are gpuc-opt's flags, as rows
# {"gpuc-train", "data"}: cmake -DSOURCE=… -DOUTPUT=… -P ToolFlags.cmake. That it finds all of them is held by
# test/end-to-end/unknown_flags_test.py, which asks each tool's --help.
set(rows "")
file(READ "${SOURCE}/tools/compiler_flags.cpp" compiler_flags) # which some tools share
file(GLOB tools "${SOURCE}/tools/gpuc-*.cpp")
list(SORT tools)
foreach(tool ${tools})
  get_filename_component(name "${tool}" NAME_WE)
  file(READ "${tool}" text)
  if(text MATCHES "tools/compiler_flags.h")
    string(APPEND text "${compiler_flags}")
  endif()
  # add…("NAME", but not addPositional(s); passThrough("PREFIX"; and a line of RecipeFlags, {"NAME", "entry",
  string(REGEX REPLACE "addPositionals?\\(" "" text "${text}")
  string(REGEX MATCHALL "add[A-Z][a-z]+\\([ \n]*\"[a-z-]+\"|passThrough\\([ \n]*\"[a-z-]+\"|\n +[{]\"[a-z-]+\", \"[a-z_]+\","
         declared "${text}")
  foreach(flag ${declared})
    string(REGEX REPLACE "^[^\"]*\"([a-z-]+)\".*" "\\1" flag "${flag}")
    string(APPEND rows "{\"${name}\", \"${flag}\"},\n")
  endforeach()
endforeach()
file(GLOB records "${SOURCE}/passes/*Passes.td")
set(passes)
foreach(record ${records})
  file(READ "${record}" text)
  string(REGEX MATCHALL "Pass<\"[a-z-]+\"" found "${text}")
  list(APPEND passes ${found})
endforeach()
foreach(pass ${passes})
  string(REGEX REPLACE "Pass<(.*)" "{\"gpuc-opt\", \\1},\n" row "${pass}")
  string(APPEND rows "${row}")
endforeach()
file(CONFIGURE OUTPUT "${OUTPUT}" CONTENT "${rows}" @ONLY)  # leaves a file alone that is so already
