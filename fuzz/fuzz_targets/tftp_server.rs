#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    inhost_tftp::fuzz::fuzz_tftp_server(bytes);
});
