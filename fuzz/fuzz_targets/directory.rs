#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    inhost_directory::fuzz::fuzz_directory(bytes);
});
