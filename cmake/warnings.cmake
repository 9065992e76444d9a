# Warnings are errors in our own code; a parent project that embeds us keeps its own rules.
function(headwater_enable_warnings target)
  target_compile_options(${target} PRIVATE
    -Wall -Wextra -Wpedantic -Wshadow -Wsign-conversion
    # Options are written .name = value; what is left out keeps its default.
    -Wno-missing-field-initializers
    $<$<CXX_COMPILER_ID:Clang,AppleClang>:-Wthread-safety>)
  if(PROJECT_IS_TOP_LEVEL)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
endfunction()
