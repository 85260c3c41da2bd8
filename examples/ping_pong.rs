// SPDX-License-Identifier: Apache-2.0
//! Two processes send a message to and fro, and time it.

use std::error::Error;
use std::process::Command;
use std::time::{Duration, Instant};

use velo::{id, Port, PortOptions};

const ROUNDS: u32 = 10_000;
const PATIENCE: Option<Duration> = Some(Duration::from_secs(5));

/// Reply to each message with what came.
fn reply(domain: &str) -> Result<(), Box<dyn Error>> {
    let port = Port::open(&PortOptions::new().domain(domain).vpid(1))?;
    let connection = port.connect(id(0, 0), PATIENCE)?;
    for _ in 0..ROUNDS {
        let message = port.peek(PATIENCE)?;
        // SAFETY: The sender is this program, and leaves what it has sent alone.
        connection.send(unsafe { message.bytes() }, message.info().tag, PATIENCE)?;
    }
    Ok(())
}

fn ask(domain: &str) -> Result<(), Box<dyn Error>> {
    let port = Port::open(&PortOptions::new().domain(domain).vpid(0))?;
    let connection = port.connect(id(0, 1), PATIENCE)?;
    let start = Instant::now();
    for round in 0..ROUNDS {
        let mut answer = [0; 4];
        connection.send(&round.to_le_bytes(), 7, PATIENCE)?;
        port.recv(&mut answer, PATIENCE)?;
        assert_eq!(u32::from_le_bytes(answer), round);
    }
    let way = start.elapsed() / ROUNDS / 2;
    println!("{ROUNDS} round trips, {way:?} each way");
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    if let Some(domain) = std::env::args().nth(1) {
        return reply(&domain);
    }
    let domain = format!("ping-pong-{}", std::process::id()); // One of our own.
    let mut child = Command::new(std::env::current_exe()?).arg(&domain).spawn()?;
    ask(&domain)?;
    assert!(child.wait()?.success());
    Ok(())
}
