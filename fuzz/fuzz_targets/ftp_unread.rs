#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    inhost_ftp::fuzz::fuzz_unread(bytes);
});
