//! `wireguard FILE`: serves HTTP inside a WireGuard tunnel. `wireguard FILE ADDRESS`: asks the HTTP server there.

use inhost_example_tunnel::wireguard::{self, Config};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, server @ ..] = &arguments[..] else { return Err("usage: wireguard FILE [ADDRESS]".into()) };
    let config = Config::parse(&std::fs::read_to_string(file)?)?;
    let addresses: Vec<String> = config.addresses.iter().map(|own| own.address().to_string()).collect();
    let (host, port) = wireguard::start(config).await?;
    match server {
        [server] => print!("{}", String::from_utf8_lossy(&wireguard::get(&host, server.parse()?).await?)),
        _ => {
            println!("http://{} inside the tunnel at UDP port {port}", addresses.join(" and "));
            wireguard::serve_http(&host).await?;
        }
    }
    Ok(())
}
