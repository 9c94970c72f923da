#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    inhost_names::fuzz::fuzz_forward(bytes);
});
