#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    inhost_explain::fuzz::fuzz_explain(bytes);
});
