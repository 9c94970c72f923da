#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    inhost_rcommands::fuzz::fuzz_rservers(bytes);
});
