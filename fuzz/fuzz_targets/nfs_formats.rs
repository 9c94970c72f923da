#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    inhost_nfs::fuzz::fuzz_nfs_formats(bytes);
});
