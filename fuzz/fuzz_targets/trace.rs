#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    inhost_trace::fuzz::fuzz_trace(bytes);
});
