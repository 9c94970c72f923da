#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    inhost_peep::fuzz::fuzz_filter(bytes);
});
