#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    inhost_mailcatch::fuzz::fuzz_mailcatch(bytes);
});
