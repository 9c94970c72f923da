//! `tun2socks LINK PROXY`: what comes over a link goes on through a SOCKS5 proxy.

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [spec, proxy] = &arguments[..] else { return Err("usage: tun2socks LINK PROXY".into()) };
    let host = inhost::Host::builder().any_address(inhost::link::open(&spec.parse()?)?).start()?;
    println!("{spec} goes through {proxy}");
    Ok(inhost_example_tunnel::tun2socks::serve(host, proxy.parse()?).await?)
}
