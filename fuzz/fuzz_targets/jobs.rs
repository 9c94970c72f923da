#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    inhost_jobs::fuzz::fuzz_jobs(bytes);
});
