#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    inhost_tn3270::fuzz::fuzz_tn3270_server(bytes);
});
