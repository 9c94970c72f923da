#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    inhost_fuzz::thaw::thaw(bytes);
});
