# HEADWATER_SANITIZE is a list such as "address;undefined".
function(headwater_enable_sanitizers target)
  if(NOT HEADWATER_SANITIZE)
    return()
  endif()
  string(REPLACE ";" "," names "${HEADWATER_SANITIZE}")
  target_compile_options(${target} PRIVATE
    -fsanitize=${names} -fno-sanitize-recover=all -fno-omit-frame-pointer
    # g++ loses track of initialisation in instrumented, optimised code.
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  target_link_options(${target} PUBLIC -fsanitize=${names})
endfunction()
