#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    inhost_inett::fuzz::fuzz_inett(bytes);
});
