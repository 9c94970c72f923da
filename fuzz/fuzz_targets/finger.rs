#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    inhost_finger::fuzz::fuzz_finger(bytes);
});
