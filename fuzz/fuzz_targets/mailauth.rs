#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    inhost_mailauth::fuzz::fuzz_mailauth(bytes);
});
