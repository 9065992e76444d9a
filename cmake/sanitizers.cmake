# HEADWATER_SANITIZE is a list such as "address;undefined". Flags are public on the core, so that
# whatever links it is instrumented and linked the same way.
function(headwater_enable_sanitizers target)
  if(NOT HEADWATER_SANITIZE)
    return()
  endif()
  string(REPLACE ";" "," names "${HEADWATER_SANITIZE}")
  target_compile_options(${target} PRIVATE
    -fsanitize=${names} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(${target} PUBLIC -fsanitize=${names})
endfunction()
