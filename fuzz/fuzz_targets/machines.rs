#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    inhost_machines::fuzz::fuzz_setup(bytes);
});
